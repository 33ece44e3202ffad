/** Holds the connection and the player, and says what it is given. */

import { connect, canDecodeOpus, decodedRate, Player, VoxwireError, WebRtcTransport, WebSocketTransport } from "../voxwire.js";
import { sentence, whyNot } from "./plain.js";

/** Ways to connect. A transport whose browser support is missing is not offered. */
export const TRANSPORTS = { websocket: WebSocketTransport, webrtc: WebRtcTransport };

const RETRY_MS = [300, 700, 1500, 3000, 5000];
const TIMEOUT_MS = 15_000;
const SLEEP_AFTER_MS = 300_000;

/**
 * Events: `state` ({ state, text }), `session`, `player` (a new one), `line` (something begins to be spoken),
 * `over` (a line ended: complete, interrupted or failed), `position`, `warning`.
 *
 * A line is `{ utterance, playback, kind, at }`.
 */
export class Speaker extends EventTarget {
  #settings;
  #opening = null;
  #retry = 0;
  #wakeUp = null;
  #hiddenSince = null;

  constructor(settings) {
    super();
    this.#settings = settings;
    this.session = null;
    this.player = null;
    /** Lines not over yet, in the order spoken. */
    this.lines = [];
    document.addEventListener("visibilitychange", () => this.#visibility());
    addEventListener("online", () => this.#wakeUp?.());
  }

  get ready() {
    return Boolean(this.session && !this.session.closed);
  }

  get speaking() {
    return this.lines.length > 0;
  }

  /** Connect, and go on trying until it works. */
  open() {
    this.#opening ??= this.#open().finally(() => (this.#opening = null));
    return this.#opening;
  }

  /** Connect anew with changed settings. */
  async reopen() {
    this.interrupt();
    this.session?.close();
    this.session = null;
    this.#wakeUp?.();
    await this.#opening;
    await this.open();
  }

  /** Must be called in a user's gesture: browsers ask for one before they play. */
  unlock() {
    this.player?.unlock();
  }

  /** Begin a line; null while there is no connection. */
  say(kind) {
    if (!this.ready) {
      this.open();
      return null;
    }
    const utterance = this.session.utterance();
    const line = { utterance, playback: this.player.play(utterance), kind, outcome: null };
    this.lines.push(line);
    utterance.finished.catch((error) => (line.error = error));
    this.#emit("line", line);
    this.#tell();
    return line;
  }

  /** Say `text` with another voice, without leaving the chosen one. */
  preview(voice, text) {
    if (!this.ready) return;
    this.session.update({ voice });
    const line = this.say("preview");
    line.utterance.send(text);
    line.utterance.end();
    // Only now: the voice is taken when the server sees the text.
    this.session.update({ voice: this.#settings.voice ?? this.session.ready.voice });
  }

  setVoice(voice) {
    this.#settings.voice = voice;
    if (this.ready) this.session.update({ voice });
  }

  setBudget(ms) {
    this.#settings.budgetMs = ms;
    if (this.ready) this.session.update({ ttfp_budget_ms: ms });
  }

  /** Fall silent at once. Each line is then `over` with what was heard of it. */
  interrupt() {
    const lines = [...this.lines];
    for (const line of lines) this.#interruptOne(line);
    return lines.length > 0;
  }

  async #interruptOne(line) {
    line.stopped = true;
    try {
      line.outcome = await line.playback.interrupt();
    } catch (error) {
      line.error = error;
    }
    this.#over(line);
  }

  // --- connection ---

  async #open() {
    while (!this.ready) {
      try {
        await this.#connect();
        this.#retry = 0;
        this.#tell();
      } catch (error) {
        if (!(error instanceof VoxwireError)) throw error;
        if (!(await this.#mayRetry(error))) return;
      }
    }
  }

  async #connect() {
    const { voice, budgetMs, transport } = this.#settings;
    if (!this.#retry) this.#state("connecting", "Connecting…");
    const way = new TRANSPORTS[transport]();
    // A track is Opus whatever is chosen: the browser itself decodes it.
    const opus = way.media === "track" || (this.#settings.encoding !== "pcm_s16le" && (await canDecodeOpus()));
    const session = await connect({
      transport: way,
      format: opus ? "opus" : "pcm_s16le",
      words: true,
      ttfp_budget_ms: budgetMs,
      timeoutMs: TIMEOUT_MS,
      ...(voice ? { voice } : {}),
    });
    session.addEventListener("close", ({ detail }) => this.#closed(session, detail));
    session.addEventListener("warning", ({ detail }) => this.#emit("warning", detail));
    try {
      await this.#makePlayer(session);
    } catch (error) {
      session.close();
      throw error;
    }
    this.session = session;
    this.#emit("session", session);
  }

  async #makePlayer(session) {
    const { transport, format } = session;
    const track = transport.media === "track";
    if (!track && this.player instanceof Player && this.player.context.sampleRate === decodedRate(format)) return;
    await this.player?.close();
    this.player = null;
    this.player = await (track ? transport.createPlayer(session) : Player.create(format));
    this.player.context.addEventListener("statechange", () => this.#tell());
    for (const type of ["ended", "stopped", "failed"]) {
      this.player.addEventListener(type, ({ detail }) => this.#played(detail.playback));
    }
    this.player.addEventListener("position", () => this.#emit("position"));
    this.player.addEventListener("started", () => this.#tell());
    this.#emit("player", this.player);
  }

  async #mayRetry(error) {
    if (error.code === "not_found" && this.#settings.voice) {
      this.#settings.voice = null; // it was there once; the server's own will do
      return true;
    }
    if (!error.retryable) {
      this.#state("trouble", sentence(error));
      return false;
    }
    const why = (await whyNot()) ?? sentence(error);
    this.#state("trouble", `${why} Trying again…`);
    const ms = error.retryAfterS ? error.retryAfterS * 1000 : RETRY_MS[Math.min(this.#retry, RETRY_MS.length - 1)];
    this.#retry += 1;
    await new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wakeUp = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wakeUp = null;
    return true;
  }

  #closed(session, error) {
    if (session !== this.session) return;
    this.session = null;
    if (!error) return;
    if (error.code === "idle_timeout") {
      this.#state("asleep", "Resting. It wakes as soon as you write.");
      return;
    }
    const cutOff = this.speaking ? " What you heard is not the whole text." : "";
    this.#retry = 1;
    this.#state("trouble", `${sentence(error)}${cutOff} Trying again…`);
    this.#emit("broken", error);
    if (error.retryable || error.code === "protocol_violation") setTimeout(() => this.open(), RETRY_MS[1]);
    else this.open();
  }

  /** A page nobody looks at for long does not hold a session. */
  #visibility() {
    if (document.hidden) {
      this.#hiddenSince = setTimeout(() => {
        if (this.speaking || !this.ready) return;
        this.session.close();
        this.session = null;
        this.#state("asleep", "Resting. It wakes as soon as you write.");
      }, SLEEP_AFTER_MS);
    } else {
      clearTimeout(this.#hiddenSince);
      if (!this.ready) {
        this.#wakeUp?.();
        this.open();
      }
    }
  }

  // --- lines ---

  #played(playback) {
    const line = this.lines.find((candidate) => candidate.playback === playback);
    if (!line || line.stopped) return;
    // A short one may have been played before the server's last word about it is read.
    line.utterance.finished.then(
      () => line.stopped || this.#over(line),
      () => line.stopped || this.#over(line),
    );
  }

  #over(line) {
    if (!this.lines.includes(line)) return;
    this.lines = this.lines.filter((other) => other !== line);
    this.#emit("over", line);
    this.#tell();
  }

  #tell() {
    if (!this.ready) return;
    if (this.player.locked && this.speaking) this.#state("locked", "Tap or press a key to allow sound.");
    else if (this.speaking) this.#state("speaking", "Speaking");
    else this.#state("ready", "Ready");
  }

  #state(state, text) {
    this.state = state;
    this.#emit("state", { state, text });
  }

  #emit(type, detail = null) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}
