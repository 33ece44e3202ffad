/** One utterance as the client sees it: text goes in, checked packets come out. */

import { ProtocolViolation, StreamTruncated } from "./errors.js";
import { StreamCheck } from "./stream.js";

const TEXT_PIECE = 4096;
const BUFFERED_PACKETS = 6000;

/**
 * Made by `Session.utterance`. Events: `start`, `packet` (a CustomEvent with the packet), `words` (with the new
 * words), `over`.
 */
export class Utterance extends EventTarget {
  #send;
  #timeoutMs;
  #timer = null;
  #check;
  #packets = [];
  #wake = null;
  #settle;
  #error = null;

  /** @param {{ send: Function, timeoutMs: number, framed: boolean }} wiring framed: its audio comes in frames */
  constructor(name, format, { send, timeoutMs, framed }) {
    super();
    this.name = name;
    this.format = format;
    /** Everything sent so far. */
    this.text = "";
    /** Words so far, in the order spoken, when the session asked for them. */
    this.words = [];
    this.started = false;
    this.textEnded = false;
    this.over = false;
    /** The server's terminal message, one or the other. */
    this.done = null;
    this.cancelled = null;
    /** `performance.now()` of each text message, oldest first; at most 2000 are kept. */
    this.sentAt = [];
    this.firstPacketAt = null;
    this.#send = send;
    this.#timeoutMs = timeoutMs;
    this.#check = framed ? new StreamCheck(format) : null;
    /** Resolves with `done` or `cancelled`; rejects with what ended it instead. */
    this.finished = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    this.finished.catch(() => {}); // a caller who only listens to events is no unhandled rejection
  }

  /** Send a piece of text, cut anywhere. */
  send(text) {
    if (this.textEnded) throw new TypeError("send after end: open another utterance");
    this.text += text;
    for (let start = 0; start < text.length; start += TEXT_PIECE) {
      if (this.sentAt.length < 2000) this.sentAt.push(performance.now());
      this.#send({ type: "text", utterance: this.name, text: text.slice(start, start + TEXT_PIECE) });
    }
  }

  /** Have everything sent so far spoken now; more text may follow. */
  flush() {
    if (!this.textEnded) this.#send({ type: "flush", utterance: this.name });
  }

  /** No more text. */
  end() {
    if (this.textEnded) return;
    this.textEnded = true;
    this.#send({ type: "end", utterance: this.name });
    this.#expect();
  }

  /**
   * Stop now; `playedMs` is what the listener heard. Packets not yet taken are dropped. Resolves as `finished`
   * does: with `done` if it was complete before it could stop.
   */
  cancel({ playedMs } = {}) {
    this.#packets.length = 0;
    if (!this.text && !this.textEnded) {
      // The server has never heard of it.
      this._cancelled({ utterance: this.name, sent_ms: 0, heard_ms: 0, heard_text: "", unheard_text: "", clock: "client" });
    } else if (!this.over) {
      this.textEnded = true;
      const played = playedMs === undefined ? {} : { played_ms: Math.max(0, playedMs) };
      this.#send({ type: "cancel", utterance: this.name, ...played });
      this.#expect();
    }
    return this.finished;
  }

  /** The packets as they came, checked; for one reader. Ends with the utterance and throws what broke it. */
  async *packets() {
    for (;;) {
      while (this.#packets.length) yield this.#packets.shift();
      if (this.#error) throw this.#error;
      if (this.over || this.samples !== null) return;
      await new Promise((resolve) => (this.#wake = resolve));
    }
  }

  /** Length in samples at the format's rate, once the sentinel told it. */
  get samples() {
    return this.#check ? this.#check.length : (this.done?.samples ?? null);
  }

  // --- what the session hands in, in the order in which it came ---

  _frame(frame) {
    this.#openStill("a frame");
    if (!this.#check) throw new ProtocolViolation("a frame on a transport that has a track");
    const packet = this.#check.frame(frame);
    if (packet) {
      this.firstPacketAt ??= performance.now();
      if (this.#packets.length >= BUFFERED_PACKETS) {
        throw new ProtocolViolation("the server sent far ahead of what can be played");
      }
      this.#packets.push(packet);
      this.dispatchEvent(new CustomEvent("packet", { detail: packet }));
    }
    this.#alive();
  }

  _start() {
    if (this.started) throw new ProtocolViolation(`utterance ${this.name} started twice`);
    this.started = true;
    this.dispatchEvent(new Event("start"));
  }

  _words(words) {
    this.#openStill("words");
    const fresh = words.map((word) => ({
      text: word.text,
      startMs: word.start_ms,
      endMs: word.end_ms,
      ...this.#span(word.char_start, word.char_end),
    }));
    this.words.push(...fresh);
    this.dispatchEvent(new CustomEvent("words", { detail: fresh }));
    this.#alive();
  }

  _done(body) {
    this.#openStill("utterance.done");
    this.#check?.done(body);
    this.done = body;
    this.#finish();
    this.#settle.resolve(body);
  }

  _cancelled(body) {
    this.#openStill("utterance.cancelled");
    if (this.samples !== null) {
      throw new ProtocolViolation(`utterance ${this.name} was cancelled after its sentinel`);
    }
    this.cancelled = body;
    this.#packets.length = 0;
    this.#finish();
    this.#settle.resolve(body);
  }

  _fail(error) {
    if (this.over) return;
    this.#error = error;
    this.#finish();
    this.#settle.reject(error);
  }

  #finish() {
    this.over = this.textEnded = true;
    clearTimeout(this.#timer);
    this.#alive();
    this.dispatchEvent(new Event("over"));
  }

  #alive() {
    this.#wake?.();
    this.#wake = null;
    if (this.textEnded) this.#expect();
  }

  /** Once the text is over something is due: its absence is a failure too. */
  #expect() {
    clearTimeout(this.#timer);
    if (this.over) return;
    this.#timer = setTimeout(() => {
      this._fail(new StreamTruncated(`nothing came for ${this.#timeoutMs / 1000} s`));
    }, this.#timeoutMs);
  }

  #openStill(what) {
    if (this.over) throw new ProtocolViolation(`${what} follows the end of utterance ${this.name}`);
  }

  /** The protocol counts code points, JavaScript UTF-16 units. */
  #span(start, end) {
    let unit = 0;
    let point = 0;
    const to = (target) => {
      while (point < target && unit < this.text.length) {
        unit += this.text.codePointAt(unit) > 0xffff ? 2 : 1;
        point += 1;
      }
      return unit;
    };
    return { charStart: to(start), charEnd: to(end) };
  }
}
