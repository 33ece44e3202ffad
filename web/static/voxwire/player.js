/** Plays utterances: jitter buffer and clock on the audio thread, words and positions here. */

import { decodedRate, makeDecoder } from "./decoder.js";
import { AudioUnavailable, ProtocolViolation } from "./errors.js";
import { makeOutput } from "./output.js";
import { RING_S } from "./player-core.js";

const LEAST_TARGET_MS = 40;
const MOST_TARGET_MS = 320;
const WORDS_AHEAD = 3;

/**
 * One utterance in the player. `state` is waiting, playing, dry (it ran out of audio), ended, stopped or failed.
 */
export class Playback {
  #player;

  constructor(player, id, utterance) {
    this.#player = player;
    this.id = id;
    this.utterance = utterance;
    this.state = "waiting";
    /** Samples given to the output, at the utterance's format's rate. */
    this.played = 0;
    /** How often the buffer ran out in the middle. */
    this.underruns = 0;
    /** Frames of the context's clock at which it began and ended. */
    this.startFrame = null;
    this.endFrame = null;
    /** `performance.now()` at which its first sample was heard. */
    this.heardAt = null;
    this.wordsTold = 0;
    this._frames = { played: 0, at: 0, pushed: 0 };
  }

  get over() {
    return ["ended", "stopped", "failed"].includes(this.state);
  }

  /** What the listener has heard, in ms from the utterance's start. */
  get heardMs() {
    return this.#player._heardMs(this);
  }

  /**
   * The word heard now, `{ charStart, charEnd, certain }`, or null. A word is told when the next one begins, so the
   * newest may be heard before that: then it is taken from the text, and not `certain`.
   */
  get wordNow() {
    const { words, text } = this.utterance;
    const { heardMs } = this;
    if (this.state === "waiting" || this.state === "dry" || !heardMs) return null;
    const index = words.findLastIndex(({ startMs }) => startMs <= heardMs);
    const word = words[index];
    if (word && heardMs < word.endMs) return { charStart: word.charStart, charEnd: word.charEnd, certain: true };
    if (index + 1 < words.length || this.over) return null;
    const from = word?.charEnd ?? 0;
    const next = /[\p{L}\p{N}]\S*/u.exec(text.slice(from));
    if (!next || (word && next.index === 0)) return null;
    return { charStart: from + next.index, charEnd: from + next.index + next[0].length, certain: false };
  }

  /** Fall silent now (within 5 ms of audio), without telling the server. */
  stop() {
    this.#player._stop(this);
  }

  /**
   * Barge-in: fall silent, tell the server, and say what was heard.
   *
   * Also right for an utterance the server has finished sending: then the words say what was heard.
   */
  async interrupt() {
    const heardMs = this.heardMs;
    this.stop();
    await this.utterance.cancel({ playedMs: heardMs });
    const said = this.utterance.cancelled;
    if (said) return { heardMs: said.heard_ms, heardText: said.heard_text, unheardText: said.unheard_text };
    const { text } = this.utterance;
    const cut = this.charsHeard(heardMs);
    return { heardMs, heardText: text.slice(0, cut), unheardText: text.slice(cut) };
  }

  /**
   * How much of the text is heard at `heardMs`, in UTF-16 units: up to the end of the last word heard whole, with
   * the punctuation that hangs on it. Needs the session's `words`.
   */
  charsHeard(heardMs = this.heardMs) {
    const { text, words, samples, format } = this.utterance;
    if (samples !== null && heardMs >= (samples * 1000) / format.sampleRate) return text.length;
    const heard = words.filter((word) => word.endMs <= heardMs);
    if (!heard.length) return 0;
    let cut = Math.max(...heard.map((word) => word.charEnd));
    const limit = Math.min(text.length, ...words.map((word) => word.charStart).filter((start) => start >= cut));
    while (cut < limit && !/\s/.test(text[cut])) cut += 1;
    return cut;
  }
}

/**
 * Events, each a CustomEvent whose detail has `playback`: `started`, `word` (with `word`, when it is heard),
 * `dry`, `ended`, `stopped`, `failed` (with `error`); and `position`, several times a second while it plays.
 */
export class Player extends EventTarget {
  #output;
  #tracks = new Map();
  #pumping = Promise.resolve();
  #nextId = 1;
  #target;
  #least;
  #buffered = 0;
  #room = null;
  #tap = null;

  /** Whether this browser can play. */
  static get supported() {
    return typeof AudioContext === "function";
  }

  /**
   * A player for sessions with this format. It is silent until `unlock` was called from a user's gesture, where
   * the browser asks for that.
   *
   * @param format a session's
   * @param {object} [options]
   * @param {number} [options.targetMs] audio collected before it starts; grows by itself when it was too little
   */
  static async create(format, { targetMs = 60 } = {}) {
    if (!Player.supported) {
      throw new AudioUnavailable("this browser has no Web Audio");
    }
    const rate = decodedRate(format);
    const context = new AudioContext({ sampleRate: rate, latencyHint: "interactive" });
    if (context.sampleRate !== rate) {
      throw new AudioUnavailable(`this browser plays at ${context.sampleRate} Hz only; ask for pcm_s16le at that rate`);
    }
    const least = Math.max(LEAST_TARGET_MS, targetMs);
    return new Player(context, await makeOutput(context, Math.round((least * rate) / 1000)), least);
  }

  constructor(context, output, leastMs) {
    super();
    this.context = context;
    this.#target = this.#least = leastMs;
    this.#output = output;
    this.#output.node.connect(context.destination);
    this.#output.onmessage = (message) => this.#heard(message);
  }

  /** Connect analysers and the like here. */
  get output() {
    return this.#output.node;
  }

  /** True while the browser waits for the user's gesture. */
  get locked() {
    return this.context.state !== "running";
  }

  /** Call it in a user's gesture. */
  async unlock() {
    if (this.context.state !== "closed") await this.context.resume();
  }

  /** Audio received and not yet played, in ms. */
  get bufferedMs() {
    return (this.#buffered * 1000) / this.context.sampleRate;
  }

  get targetMs() {
    return this.#target;
  }

  /** Seconds from the audio thread to the ear, as far as the browser knows. */
  get outputLatencyS() {
    return this.context.outputLatency || this.context.baseLatency || 0;
  }

  /** Play `utterance` behind those that play already. */
  play(utterance) {
    const playback = new Playback(this, this.#nextId, utterance);
    this.#nextId += 1;
    this.#tracks.set(playback.id, playback);
    this.#pumping = this.#pumping.then(() => this.#pump(playback));
    return playback;
  }

  /** Every output block from now on, `({ frame, samples })` at `context.sampleRate`; null: no more. */
  tap(callback) {
    this.#tap = callback;
    this.#post({ type: "tap", on: callback !== null });
  }

  /** Fall silent and free the sound device. */
  async close() {
    for (const playback of [...this.#tracks.values()]) playback.stop();
    this.#output.node.disconnect();
    if (this.context.state !== "closed") await this.context.close();
  }

  async #pump(playback) {
    const { id, utterance } = playback;
    if (playback.over) return;
    this.#post({ type: "begin", id });
    let decoder = null;
    try {
      decoder = makeDecoder(utterance.format, (samples) => this.#push(playback, samples));
      for await (const packet of utterance.packets()) {
        if (playback.over) return;
        await decoder.decode(packet);
        await this.#hasRoom(playback);
      }
      if (playback.over) return;
      await decoder.flush();
      if (utterance.cancelled) playback.stop();
      else this.#end(playback);
    } catch (error) {
      this.#fail(playback, error);
    } finally {
      decoder?.close();
    }
  }

  #push(playback, samples) {
    if (playback.over) return;
    playback._frames.pushed += samples.length;
    this.#post({ type: "push", id: playback.id, samples }, [samples.buffer]);
  }

  #end(playback) {
    const { samples, format } = playback.utterance;
    const length = (samples * this.context.sampleRate) / format.sampleRate;
    if (playback._frames.pushed < length) {
      throw new ProtocolViolation(`${length} samples were announced, ${playback._frames.pushed} decoded`);
    }
    this.#post({ type: "end", id: playback.id, length });
  }

  /** What came is still played; then it is over. */
  #fail(playback, error) {
    if (playback.over) return;
    playback.error = error;
    this.#post({ type: "end", id: playback.id, length: playback._frames.pushed });
  }

  async #hasRoom(playback) {
    while (!playback.over && this.#ahead > (RING_S - 2) * this.context.sampleRate) {
      await new Promise((resolve) => (this.#room = resolve));
    }
  }

  get #ahead() {
    let frames = 0;
    for (const { over, _frames } of this.#tracks.values()) if (!over) frames += _frames.pushed - _frames.played;
    return frames;
  }

  _stop(playback) {
    if (playback.over) return;
    this.#settle(playback, "stopped");
    this.#post({ type: "stop", id: playback.id });
    this.#wake();
  }

  _heardMs(playback) {
    const { played, at } = playback._frames;
    const rate = this.context.sampleRate;
    let frames = played - this.outputLatencyS * rate;
    if (playback.state === "playing") {
      // Reports come every few blocks; between them the clock goes on.
      frames += Math.min(Math.max(0, this.context.currentTime * rate - at), 0.1 * rate);
    } else if (at) {
      frames = Math.min(played, frames + Math.max(0, this.context.currentTime * rate - at));
    }
    const length = playback.utterance.samples;
    const end = length === null ? Infinity : (length * 1000) / playback.utterance.format.sampleRate;
    return Math.min(end, Math.max(0, (frames * 1000) / rate));
  }

  // --- from the audio thread ---

  #heard(data) {
    if (data.type === "tap") {
      this.#tap?.(data);
      return;
    }
    const playback = this.#tracks.get(data.id);
    if (playback) {
      playback._frames.played = data.played;
      playback._frames.at = data.frame;
      playback.played = (data.played * playback.utterance.format.sampleRate) / this.context.sampleRate;
    }
    if (data.type === "state") {
      this.#buffered = data.buffered;
      this.#wake();
      this.#follow();
    } else if (playback) {
      this.#changed(playback, data);
    }
  }

  #changed(playback, { type, frame }) {
    if (type === "started") {
      const ago = this.context.currentTime - frame / this.context.sampleRate;
      playback.heardAt = performance.now() - (ago - this.outputLatencyS) * 1000;
      playback.state = "playing";
      playback.startFrame = frame;
      this.#tell("started", playback);
    } else if (type === "resumed") {
      playback.state = "playing";
    } else if (type === "dry") {
      playback.state = "dry";
      playback.underruns += 1;
      // Where the text ran out, more buffer would not have helped.
      if (hadText(playback.utterance)) this.#retarget(this.#target * 1.5);
      this.#tell("dry", playback);
    } else if (type === "ended") {
      playback.endFrame = frame;
      if (!playback.underruns) this.#retarget(this.#target * 0.8);
      this.#settle(playback, playback.error ? "failed" : "ended");
    }
  }

  /** Tell the words that are heard now. */
  #follow() {
    for (const playback of this.#tracks.values()) {
      const heardMs = playback.heardMs;
      const { words } = playback.utterance;
      while (playback.wordsTold < words.length && words[playback.wordsTold].startMs <= heardMs) {
        this.#tell("word", playback, { word: words[playback.wordsTold] });
        playback.wordsTold += 1;
      }
      const playedMs = (playback._frames.played * 1000) / this.context.sampleRate;
      if (playback.over && heardMs >= playedMs - 1) this.#tracks.delete(playback.id);
    }
    this.dispatchEvent(new CustomEvent("position", { detail: {} }));
  }

  #settle(playback, state) {
    playback.state = state;
    if (state !== "ended") this.#tracks.delete(playback.id);
    this.#tell(state, playback, { error: playback.error ?? null });
  }

  #retarget(ms) {
    this.#target = Math.min(MOST_TARGET_MS, Math.max(this.#least, ms));
    this.#post({ type: "target", frames: Math.round((this.#target * this.context.sampleRate) / 1000) });
  }

  #tell(type, playback, more = {}) {
    this.dispatchEvent(new CustomEvent(type, { detail: { playback, ...more } }));
  }

  #wake() {
    this.#room?.();
    this.#room = null;
  }

  #post(message, transfer = []) {
    this.#output.post(message, transfer);
  }
}

/** Whether the server had enough text to go on speaking. */
function hadText({ text, textEnded, words }) {
  const untold = text.slice(words.at(-1)?.charEnd ?? 0).match(/\S*[\p{L}\p{N}]\S*/gu) ?? [];
  return textEnded || untold.length > WORDS_AHEAD;
}
