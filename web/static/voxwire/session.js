/** A connection that speaks. */

import { ConnectFailed, ProtocolViolation, ServerError, StreamTruncated, VoxwireError } from "./errors.js";
import { parseFrame } from "./stream.js";
import { Utterance } from "./utterance.js";
import { WebSocketTransport } from "./websocket.js";

const INDICES = 64;
const CLOSED_BY_CLIENT = 4000;
const VIOLATION = 4002;

/**
 * Made by `connect`. Events: `warning` (a CustomEvent with `code` and `message`), `close` (with the error that
 * ended the session, or null).
 */
export class Session extends EventTarget {
  #transport;
  #timeoutMs;
  #utterances = new Map();
  #byIndex = new Map();
  #opened = 0;
  #failure = null;
  #closing = false;
  #readied;
  #keepalive = null;

  /** @param transport see WebSocketTransport */
  constructor(transport, timeoutMs) {
    super();
    this.#transport = transport;
    this.#timeoutMs = timeoutMs;
    /** The server's `session.ready`. */
    this.ready = null;
    this.closed = false;
    transport.onmessage = (text) => this.#guard(() => this.#message(text));
    transport.onframe = (buffer) => this.#guard(() => this.#frame(buffer));
    transport.onclose = ({ code, reason }) => this.#over(this.#truncated(code, reason));
  }

  /** What audio comes in: `encoding`, `sampleRate`, `frameMs`, `bitrate`, `preSkip`. */
  get format() {
    const { encoding, sample_rate, frame_ms, bitrate, pre_skip } = this.ready.format;
    return { encoding, sampleRate: sample_rate, frameMs: frame_ms, bitrate, preSkip: pre_skip ?? 0 };
  }

  get transport() {
    return this.#transport;
  }

  /** Open the next utterance. Utterances are spoken in the order in which their first text is sent. */
  utterance(name = `c${(this.#opened += 1)}`) {
    if (this.#utterances.has(name)) throw new TypeError(`utterance ${name} is still being spoken`);
    const utterance = new Utterance(name, this.format, {
      send: (message) => this.#transport.send(message),
      timeoutMs: this.#timeoutMs,
      framed: this.#transport.media === "frames",
    });
    if (this.#failure || this.closed) utterance._fail(this.#failure ?? new StreamTruncated("the session is closed"));
    else this.#utterances.set(name, utterance);
    utterance.addEventListener("over", () => this.#utterances.delete(name));
    return utterance;
  }

  /** Change voice, sampling, speed or other options of `connect` from the next utterance on. */
  update(changes) {
    if ("format" in changes) throw new TypeError("a session keeps its format; open another one");
    this.#transport.send({ type: "session.update", ...changes });
  }

  /** Say that somebody is still there, when no text is due for long. */
  keepalive() {
    this.#transport.send({ type: "keepalive" });
  }

  /** Leave. What is still being spoken is cut off. */
  close() {
    this.#closing = true;
    this.#transport.close(this.#utterances.size ? CLOSED_BY_CLIENT : 1000);
    this.#over(null);
  }

  async _start(options, keepaliveMs) {
    const signal = AbortSignal.timeout(this.#timeoutMs);
    await this.#transport.open(signal);
    await new Promise((resolve, reject) => {
      this.#readied = { resolve, reject };
      signal.addEventListener("abort", () => {
        reject(new ConnectFailed(`no session.ready within ${this.#timeoutMs / 1000} s`));
      });
      this.#transport.send({ type: "session.start", ...options });
    }).catch((error) => {
      this.#transport.close();
      throw error;
    });
    if (keepaliveMs) this.#keepalive = setInterval(() => this.keepalive(), keepaliveMs);
  }

  #frame(buffer) {
    const frame = parseFrame(buffer);
    const utterance = this.#byIndex.get(frame.index);
    if (!utterance) {
      throw new ProtocolViolation(`a frame of utterance index ${frame.index}, which has not started`);
    }
    utterance._frame(frame);
  }

  #message(text) {
    let body;
    try {
      body = JSON.parse(text);
    } catch (cause) {
      throw new ProtocolViolation("the server's message is no JSON", { cause });
    }
    switch (body.type) {
      case "session.ready":
        if (this.ready) throw new ProtocolViolation("a second session.ready");
        this.ready = body;
        this.#readied.resolve();
        break;
      case "utterance.start":
        this.#started(body);
        break;
      case "words":
        this.#named(body)._words(body.words);
        break;
      case "utterance.done":
        this.#named(body)._done(body);
        break;
      case "utterance.cancelled":
        this.#named(body)._cancelled(body);
        break;
      case "warning":
        this.dispatchEvent(new CustomEvent("warning", { detail: { code: body.code, message: body.message } }));
        break;
      case "error":
        throw new ServerError(body);
      default: // a later server may say more than this client knows
    }
  }

  #started(body) {
    const utterance = this.#named(body);
    utterance._start();
    this.#byIndex.delete(body.index);
    this.#byIndex.set(body.index, utterance);
    if (this.#byIndex.size > INDICES) this.#byIndex.delete(this.#byIndex.keys().next().value);
  }

  #named(body) {
    const utterance = this.#utterances.get(body.utterance);
    if (!utterance) {
      throw new ProtocolViolation(`${body.type} for utterance ${body.utterance}, which is not open`);
    }
    return utterance;
  }

  /** Whatever cannot be trusted any more ends the session. */
  #guard(step) {
    if (this.closed) return;
    try {
      step();
    } catch (error) {
      if (!(error instanceof VoxwireError)) throw error;
      this.#transport.close(error instanceof ProtocolViolation ? VIOLATION : 1000);
      this.#over(error);
    }
  }

  #truncated(code, reason) {
    if (this.#closing) return null;
    return new StreamTruncated(
      `the connection ended without a sentinel (close code ${code}${reason ? `, ${reason}` : ""})`,
      code,
    );
  }

  #over(error) {
    if (this.closed) return;
    this.closed = true;
    this.#failure = error;
    clearInterval(this.#keepalive);
    this.#readied?.reject(error instanceof ServerError ? error : new ConnectFailed(`the server left: ${error?.message}`));
    for (const utterance of this.#utterances.values()) {
      utterance._fail(error ?? new StreamTruncated("the session was closed"));
    }
    this.#utterances.clear();
    this.dispatchEvent(new CustomEvent("close", { detail: error }));
  }
}

/**
 * Open a session.
 *
 * What is not given is the server's to choose. Rejects with ConnectFailed or ServerError.
 *
 * @param {object} [options]
 * @param {string | URL} [options.url] the server; default: the one this page is from
 * @param {object} [options.transport] another transport than a WebSocket to `url`
 * @param {string | object} [options.format] an encoding's name, or the protocol's `format` object
 * @param {number} [options.timeoutMs] bounds every wait for an answer that is due
 * @param {number} [options.keepaliveMs] how often to hold an idle session open; 0: not at all
 * Further options are `session.start`'s own: voice, words, sampling, speed, language, segment, ttfp_budget_ms, on_budget_miss.
 */
export async function connect({ url, transport, format, timeoutMs = 30_000, keepaliveMs = 20_000, ...options } = {}) {
  const session = new Session(transport ?? new WebSocketTransport(url), timeoutMs);
  if (format) options.format = typeof format === "string" ? { encoding: format } : format;
  await session._start(options, keepaliveMs);
  return session;
}
