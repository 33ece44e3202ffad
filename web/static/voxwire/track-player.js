/** Plays a session's audio track, which the browser itself receives, buffers and decodes. */

import { AudioUnavailable } from "./errors.js";
import { Playback } from "./player.js";

const STATS_MS = 500;
const SILENT_END_MS = 400;

/**
 * `Player`'s interface for a transport with a track. What is heard is told from the sound itself: the server sends
 * silence between utterances, so each begins where sound does.
 */
export class TrackPlayer extends EventTarget {
  #node;
  #source;
  #sink;
  #receiver;
  #waiting = []; // playbacks not over yet, in order
  #told = new Set(); // playbacks whose words are still followed
  #nextId = 1;
  #frame = 0;
  #tap = null;
  #delay = { seconds: 0, count: 0, ms: 0 };
  #timer;

  static get supported() {
    return typeof AudioWorkletNode === "function";
  }

  /** @param {RTCRtpReceiver} receiver */
  static async create(receiver) {
    if (!TrackPlayer.supported) throw new AudioUnavailable("audio worklets need https or localhost");
    const context = new AudioContext({ latencyHint: "interactive" });
    await context.audioWorklet.addModule(new URL("track-worklet.js", import.meta.url));
    return new TrackPlayer(context, receiver);
  }

  constructor(context, receiver) {
    super();
    this.context = context;
    this.#receiver = receiver;
    const stream = new MediaStream([receiver.track]);
    // Chromium lets no sound of a remote track into Web Audio unless an element plays it too.
    this.#sink = new Audio();
    this.#sink.muted = true;
    this.#sink.srcObject = stream;
    this.#sink.play().catch(() => {});
    this.#source = context.createMediaStreamSource(stream);
    this.#node = new AudioWorkletNode(context, "voxwire-track", { numberOfInputs: 1, outputChannelCount: [1] });
    this.#node.port.onmessage = ({ data }) => this.#heard(data);
    this.#source.connect(this.#node).connect(context.destination);
    this.#timer = setInterval(() => this.#measure(), STATS_MS);
  }

  get output() {
    return this.#node;
  }

  get locked() {
    return this.context.state !== "running";
  }

  async unlock() {
    if (this.context.state !== "closed") await this.context.resume();
    await this.#sink.play().catch(() => {});
  }

  /** What the browser's jitter buffer holds on average. */
  get bufferedMs() {
    return this.#delay.ms;
  }

  get targetMs() {
    return this.#delay.ms;
  }

  get outputLatencyS() {
    return this.context.outputLatency || this.context.baseLatency || 0;
  }

  play(utterance) {
    const playback = new Playback(this, this.#nextId, utterance);
    this.#nextId += 1;
    this.#waiting.push(playback);
    this.#told.add(playback);
    utterance.finished.then(
      () => this.#finished(playback),
      (error) => {
        playback.error = error;
        this.#settle(playback, "failed");
      },
    );
    return playback;
  }

  tap(callback) {
    this.#tap = callback;
    this.#node.port.postMessage({ type: "tap", on: callback !== null });
  }

  async close() {
    clearInterval(this.#timer);
    for (const playback of [...this.#waiting]) playback.stop();
    this.#source.disconnect();
    this.#node.disconnect();
    this.#sink.srcObject = null;
    if (this.context.state !== "closed") await this.context.close();
  }

  // --- for playbacks ---

  _stop(playback) {
    if (playback.over) return;
    if (playback === this.#waiting[0]) this.#node.port.postMessage({ type: "mute" });
    this.#settle(playback, "stopped");
    const release = () => this.#node.port.postMessage({ type: "release" });
    playback.utterance.finished.then(release, release);
  }

  _heardMs(playback) {
    if (playback.startFrame === null) return 0;
    const rate = this.context.sampleRate;
    const now = playback.over ? playback.endFrame : this.context.currentTime * rate;
    const ms = ((now - playback.startFrame) / rate - this.outputLatencyS) * 1000;
    const length = playback.utterance.samples;
    const end = length === null ? Infinity : (length * 1000) / playback.utterance.format.sampleRate;
    return playback.state === "ended" ? end : Math.min(end, Math.max(0, ms));
  }

  // --- from the audio thread ---

  #heard(data) {
    if (data.type === "tap") this.#tap?.(data);
    else if (data.type === "onset") this.#onset(data.frame);
    else this.#passed(data.frame);
  }

  #onset(frame) {
    this.#passed(frame);
    const next = this.#waiting[0];
    if (!next || next.state !== "waiting" || !next.utterance.started) return;
    const ago = this.context.currentTime - frame / this.context.sampleRate;
    next.state = "playing";
    next.startFrame = frame;
    next.heardAt = performance.now() - (ago - this.outputLatencyS) * 1000;
    next.utterance.firstPacketAt ??= performance.now() - ago * 1000;
    this.#tell("started", next);
  }

  #passed(frame) {
    this.#frame = frame;
    const current = this.#waiting[0];
    if (current?.state === "playing") {
      const end = this.#endOf(current);
      const upTo = Math.min(frame, end) - current.startFrame;
      current.played = (upTo * current.utterance.format.sampleRate) / this.context.sampleRate;
      if (frame >= end) {
        current.endFrame = end;
        current.played = current.utterance.samples;
        this.#settle(current, "ended");
      }
    }
    this.#follow();
  }

  #endOf({ startFrame, utterance }) {
    if (utterance.samples === null) return Infinity;
    return startFrame + Math.round((utterance.samples * this.context.sampleRate) / utterance.format.sampleRate);
  }

  /** The server has sent all of it. If there was nothing to be heard in it, it ends all the same. */
  #finished(playback) {
    if (playback.over) return;
    if (playback.utterance.cancelled) {
      playback.stop();
      return;
    }
    const ms = playback.utterance.samples ? SILENT_END_MS + this.bufferedMs : 0;
    setTimeout(() => {
      if (playback.state !== "waiting") return;
      playback.startFrame = playback.endFrame = this.#frame;
      playback.played = playback.utterance.samples ?? 0;
      this.#settle(playback, "ended");
    }, ms);
  }

  #follow() {
    for (const playback of this.#told) {
      if (playback.startFrame === null) continue;
      const { heardMs } = playback;
      const { words } = playback.utterance;
      while (playback.wordsTold < words.length && words[playback.wordsTold].startMs <= heardMs) {
        this.#tell("word", playback, { word: words[playback.wordsTold] });
        playback.wordsTold += 1;
      }
      if (playback.over) this.#told.delete(playback);
    }
    this.dispatchEvent(new CustomEvent("position", { detail: {} }));
  }

  #settle(playback, state) {
    if (playback.over) return;
    playback.endFrame ??= this.context.currentTime * this.context.sampleRate;
    playback.state = state;
    this.#waiting = this.#waiting.filter((other) => other !== playback);
    if (state !== "ended") this.#told.delete(playback);
    this.#tell(state, playback, { error: playback.error ?? null });
  }

  async #measure() {
    const report = await this.#receiver.getStats();
    for (const stats of report.values()) {
      if (stats.type !== "inbound-rtp" || !stats.jitterBufferEmittedCount) continue;
      const { jitterBufferDelay: seconds, jitterBufferEmittedCount: count } = stats;
      const emitted = count - this.#delay.count;
      const ms = emitted ? ((seconds - this.#delay.seconds) * 1000) / emitted : this.#delay.ms;
      this.#delay = { seconds, count, ms };
    }
  }

  #tell(type, playback, more = {}) {
    this.dispatchEvent(new CustomEvent(type, { detail: { playback, ...more } }));
  }
}
