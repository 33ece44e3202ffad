/** Listens on the audio thread to what a track plays: where sound begins after silence, and silence on demand. */

const SILENT = 2e-4; // decoded silence is exact zero but for what the codec rings
const SILENCE_S = 0.008;
const FADE_S = 0.005;
const STATE_S = 0.02;

class VoxwireTrack extends AudioWorkletProcessor {
  #quiet = Infinity; // frames since the last sound
  #muted = false;
  #released = false; // unmute at the next silence
  #gain = 1;
  #tap = false;
  #stateAt = 0;

  constructor() {
    super();
    this.port.onmessage = ({ data }) => {
      if (data.type === "mute") {
        this.#muted = true;
        this.#released = false;
      } else if (data.type === "release") {
        this.#released = true;
      } else if (data.type === "tap") {
        this.#tap = data.on;
      }
    };
  }

  process([[input]], [[out]]) {
    for (let at = 0; at < out.length; at += 1) {
      const sample = input ? input[at] : 0;
      this.#listen(sample, currentFrame + at);
      const step = 1 / (FADE_S * sampleRate);
      this.#gain = Math.min(1, Math.max(0, this.#gain + (this.#muted ? -step : step)));
      out[at] = sample * this.#gain;
    }
    if (this.#tap) this.port.postMessage({ type: "tap", frame: currentFrame, samples: out.slice() });
    if (currentFrame >= this.#stateAt) {
      this.#stateAt = currentFrame + STATE_S * sampleRate;
      this.port.postMessage({ type: "state", frame: currentFrame });
    }
    return true;
  }

  #listen(sample, frame) {
    if (Math.abs(sample) <= SILENT) {
      this.#quiet += 1;
      if (this.#muted && this.#released && this.#quiet > SILENCE_S * sampleRate) this.#muted = false;
      return;
    }
    if (this.#quiet > SILENCE_S * sampleRate) this.port.postMessage({ type: "onset", frame });
    this.#quiet = 0;
  }
}

registerProcessor("voxwire-track", VoxwireTrack);
