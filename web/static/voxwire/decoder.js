/** Packets to PCM: float32, mono. Opus through WebCodecs, PCM and G.711 here. */

import { AudioUnavailable, ProtocolViolation } from "./errors.js";

const OPUS_RATE = 48_000;
const OPUS = { codec: "opus", sampleRate: OPUS_RATE, numberOfChannels: 1 };

/** Sample rate of the decoded audio: Opus always decodes at 48 kHz, everything else as it was sent. */
export function decodedRate(format) {
  return format.encoding === "opus" ? OPUS_RATE : format.sampleRate;
}

/** Whether this browser can decode Opus packets. It can in secure contexts (https, localhost) only. */
export async function canDecodeOpus() {
  if (typeof AudioDecoder !== "function") return false;
  const { supported } = await AudioDecoder.isConfigSupported(OPUS);
  return supported;
}

/**
 * A decoder for one utterance. `onsamples` gets each packet's samples, in order, without the pre-skip; the
 * padding of the last packet is still there, because only the sentinel tells its size.
 */
export function makeDecoder(format, onsamples) {
  return format.encoding === "opus" ? new OpusDecoder(format, onsamples) : new PlainDecoder(format, onsamples);
}

class PlainDecoder {
  #read;
  #onsamples;

  constructor(format, onsamples) {
    this.#read = READERS[format.encoding];
    this.#onsamples = onsamples;
    if (!this.#read) throw new AudioUnavailable(`this client cannot decode ${format.encoding}`);
  }

  async decode({ payload }) {
    this.#onsamples(this.#read(payload));
  }

  async flush() {}

  close() {}
}

class OpusDecoder {
  #decoder;
  #skip;
  #rate;
  #failure = null;

  constructor(format, onsamples) {
    if (typeof AudioDecoder !== "function") {
      throw new AudioUnavailable("this browser cannot decode Opus here (WebCodecs needs https or localhost); ask for pcm_s16le");
    }
    this.#rate = format.sampleRate;
    this.#skip = (format.preSkip * OPUS_RATE) / format.sampleRate;
    this.#decoder = new AudioDecoder({
      output: (audio) => onsamples(this.#take(audio)),
      error: (cause) => (this.#failure = new ProtocolViolation(`a packet is not Opus: ${cause.message}`, { cause })),
    });
    this.#decoder.configure(OPUS);
  }

  async decode({ payload, pts }) {
    if (this.#failure) throw this.#failure;
    const timestamp = (pts * 1e6) / this.#rate;
    this.#decoder.decode(new EncodedAudioChunk({ type: "key", timestamp, data: payload }));
  }

  async flush() {
    if (!this.#failure) await this.#decoder.flush();
    if (this.#failure) throw this.#failure;
  }

  close() {
    if (this.#decoder.state !== "closed") this.#decoder.close();
  }

  #take(audio) {
    const samples = new Float32Array(audio.numberOfFrames);
    audio.copyTo(samples, { planeIndex: 0, format: "f32-planar" });
    audio.close();
    const drop = Math.min(this.#skip, samples.length);
    this.#skip -= drop;
    return drop ? samples.slice(drop) : samples;
  }
}

function view(payload) {
  return new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
}

function muLaw(code) {
  const bits = ~code & 0xff;
  const magnitude = ((((bits & 0x0f) << 3) + 0x84) << ((bits & 0x70) >> 4)) - 0x84;
  return (bits & 0x80 ? -magnitude : magnitude) / 32768;
}

function aLaw(code) {
  const bits = code ^ 0x55;
  const exponent = (bits & 0x70) >> 4;
  let magnitude = ((bits & 0x0f) << 4) + 8;
  if (exponent > 0) magnitude = (magnitude + 0x100) << (exponent - 1);
  return (bits & 0x80 ? magnitude : -magnitude) / 32768;
}

const READERS = {
  pcm_s16le: (payload) => {
    const data = view(payload);
    return Float32Array.from({ length: payload.length / 2 }, (_, i) => data.getInt16(2 * i, true) / 32768);
  },
  pcm_f32le: (payload) => {
    const data = view(payload);
    return Float32Array.from({ length: payload.length / 4 }, (_, i) => data.getFloat32(4 * i, true));
  },
  mulaw: (payload) => Float32Array.from(payload, muLaw),
  alaw: (payload) => Float32Array.from(payload, aLaw),
};
