/** The player on the audio thread. */

import { PlayerCore } from "./player-core.js";

class VoxwirePlayer extends AudioWorkletProcessor {
  #core;

  constructor({ processorOptions }) {
    super();
    this.#core = new PlayerCore(sampleRate, processorOptions.target, (message) => this.port.postMessage(message));
    this.port.onmessage = ({ data }) => this.#core.receive(data);
  }

  process(_inputs, [[out]]) {
    this.#core.process(out, currentFrame);
    return true;
  }
}

registerProcessor("voxwire-player", VoxwirePlayer);
