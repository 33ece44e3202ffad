/**
 * What a client checks of one utterance's audio: framing, order, times, length and checksum.
 * Pure: no sockets, no clock.
 */

import { ProtocolViolation, StreamTruncated } from "./errors.js";

const HEADER_BYTES = 16;
const VERSION = 1;
const EOS = 1;
const FIRST = 2;
const DISCONTINUITY = 4;

const SAMPLE_BYTES = { pcm_s16le: 2, pcm_f32le: 4, mulaw: 1, alaw: 1 };
const OPUS_RATE = 48_000;
const SILK_MS = [10, 20, 40, 60];
const HYBRID_MS = [10, 20];
const CELT_MS = [2.5, 5, 10, 20];

/** Read a binary message. Throws ProtocolViolation when it is not a version 1 frame. @param {ArrayBuffer} message */
export function parseFrame(message) {
  if (message.byteLength < HEADER_BYTES) {
    throw new ProtocolViolation(`a binary message of ${message.byteLength} bytes is shorter than its header`);
  }
  const view = new DataView(message);
  if (view.getUint8(0) !== VERSION) {
    throw new ProtocolViolation(`frame version ${view.getUint8(0)}, expected ${VERSION}`);
  }
  return {
    flags: view.getUint8(1),
    index: view.getUint16(2),
    sequence: view.getUint32(4),
    pts: Number(view.getBigUint64(8)),
    payload: new Uint8Array(message, HEADER_BYTES),
  };
}

/** Duration of an Opus packet in samples at 48 kHz (RFC 6716, section 3.1). @param {Uint8Array} payload */
export function opusSamples(payload) {
  if (!payload.length) throw new ProtocolViolation("an Opus packet cannot be empty");
  const config = payload[0] >> 3;
  const code = payload[0] & 3;
  let frameMs;
  if (config < 12) frameMs = SILK_MS[config & 3];
  else if (config < 16) frameMs = HYBRID_MS[config & 1];
  else frameMs = CELT_MS[config & 3];
  if (code === 3 && payload.length < 2) {
    throw new ProtocolViolation("an Opus packet of code 3 has no frame count");
  }
  const count = code === 3 ? payload[1] & 0x3f : code === 0 ? 1 : 2;
  return ((frameMs * OPUS_RATE) / 1000) * count;
}

/** Length of one packet, in samples at the format's rate. */
export function packetSamples(format, payload) {
  if (format.encoding === "opus") return Math.floor((opusSamples(payload) * format.sampleRate) / OPUS_RATE);
  const width = SAMPLE_BYTES[format.encoding];
  if (!width) throw new ProtocolViolation(`unknown encoding ${format.encoding}`);
  if (payload.length % width) {
    throw new ProtocolViolation(`${payload.length} bytes are not whole samples of ${format.encoding}`);
  }
  return payload.length / width;
}

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});

/** CRC-32 (zlib's) of `bytes`, continued from `crc`. */
export function crc32(bytes, crc = 0) {
  let value = ~crc;
  for (const byte of bytes) value = CRC_TABLE[(value ^ byte) & 0xff] ^ (value >>> 8);
  return ~value >>> 0;
}

/** The running check of one utterance, from its first frame to its `utterance.done`. */
export class StreamCheck {
  #format;
  #longest = 0;

  constructor(format) {
    this.#format = format;
    /** Number of audio packets so far; the next frame's sequence number. */
    this.sequence = 0;
    /** End of the last packet, in samples. */
    this.position = 0;
    /** The sentinel's time in samples, once it came. @type {number | null} */
    this.length = null;
    this.crc32 = 0;
  }

  /** Check the next frame; null for the sentinel. Throws ProtocolViolation. */
  frame({ flags, sequence, pts, payload }) {
    if (this.length !== null) {
      throw new ProtocolViolation(`a frame (sequence ${sequence}) follows the sentinel`);
    }
    if (sequence !== this.sequence) {
      throw new ProtocolViolation(`sequence number ${sequence}, expected ${this.sequence}`);
    }
    if (flags & FIRST && sequence) throw new ProtocolViolation(`frame ${sequence} says it is the first`);
    if (flags & EOS) {
      this.#sentinel(pts, payload);
      return null;
    }
    const samples = packetSamples(this.#format, payload);
    if (!samples) throw new ProtocolViolation(`frame ${sequence} is empty and not a sentinel`);
    if (pts !== this.position && !(flags & DISCONTINUITY && pts > this.position)) {
      throw new ProtocolViolation(`frame ${sequence} begins at ${pts}, expected ${this.position}`);
    }
    this.sequence += 1;
    this.position = pts + samples;
    this.#longest = Math.max(this.#longest, samples);
    this.crc32 = crc32(payload, this.crc32);
    return { payload, sequence, pts, samples };
  }

  /** Check what the server says it sent against what came. Throws StreamTruncated, ProtocolViolation. */
  done(body) {
    if (this.length === null) throw new StreamTruncated("utterance.done came without a sentinel");
    for (const [name, came] of [
      ["samples", this.length],
      ["frames", this.sequence],
      ["crc32", this.crc32],
    ]) {
      if (body[name] !== came) {
        throw new ProtocolViolation(`utterance.done says ${name} ${body[name]}, what came has ${came}`);
      }
    }
  }

  #sentinel(pts, payload) {
    if (payload.length) throw new ProtocolViolation("the sentinel carries a payload");
    // The last packet may be padded to a whole one, and the decoder's start is to be dropped.
    const padding = this.sequence ? this.position - this.#format.preSkip - pts : -pts;
    if (padding < 0 || (padding && padding >= this.#longest)) {
      throw new ProtocolViolation(
        `the sentinel says ${pts} samples, ${this.position} came, ${this.#format.preSkip} to skip`,
      );
    }
    this.length = pts;
  }
}
