/** Where a player's samples go: an audio worklet, or the main thread on pages that may not have one. */

import { PlayerCore } from "./player-core.js";

const BLOCK = 2048;

/**
 * An output of `context`: `{ node, post, onmessage }`, the messages being PlayerCore's.
 *
 * Audio worklets need a secure context (https, localhost). Elsewhere the deprecated script processor does the same,
 * and has to share its thread with the page.
 */
export async function makeOutput(context, target) {
  if (typeof AudioWorkletNode !== "function") return new ScriptOutput(context, target);
  await context.audioWorklet.addModule(new URL("player-worklet.js", import.meta.url));
  return new WorkletOutput(context, target);
}

class WorkletOutput {
  constructor(context, target) {
    this.onmessage = () => {};
    this.node = new AudioWorkletNode(context, "voxwire-player", {
      numberOfInputs: 0,
      outputChannelCount: [1],
      processorOptions: { target },
    });
    this.node.port.onmessage = ({ data }) => this.onmessage(data);
  }

  post(message, transfer = []) {
    this.node.port.postMessage(message, transfer);
  }
}

class ScriptOutput {
  #core;

  constructor(context, target) {
    this.onmessage = () => {};
    this.#core = new PlayerCore(context.sampleRate, target, (message) => this.onmessage(message));
    this.node = context.createScriptProcessor(BLOCK, 1, 1); // some browsers never call it without an input
    let next = 0;
    this.node.onaudioprocess = ({ outputBuffer, playbackTime }) => {
      const out = outputBuffer.getChannelData(0);
      const told = Math.round(playbackTime * context.sampleRate);
      // The time it tells is not exact; only a block that was left out is believed.
      const frame = Math.abs(told - next) < 2 * BLOCK ? next : told;
      next = frame + out.length;
      out.fill(0);
      this.#core.process(out, frame);
    };
  }

  post(message) {
    this.#core.receive(message);
  }
}
