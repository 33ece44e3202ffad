/**
 * What can go wrong, as types.
 *
 * - VoxwireError
 *   - ConnectFailed: no server there, or it does not speak this protocol
 *   - ServerError: the server said what is wrong
 *   - ProtocolViolation: the server broke the protocol
 *   - StreamTruncated: the audio ended without its sentinel
 *   - AudioUnavailable: this browser cannot play or decode it
 */

/** Base of everything this module throws. `retryable`: the same call may succeed later. */
export class VoxwireError extends Error {
  /** @param {string} message @param {{ code?: string, retryable?: boolean, cause?: unknown }} [options] */
  constructor(message, { code = "client", retryable = false, cause } = {}) {
    super(message, { cause });
    this.name = new.target.name;
    this.code = code;
    this.retryable = retryable;
  }
}

/** There is no connection, and so no session. */
export class ConnectFailed extends VoxwireError {
  constructor(message, options = {}) {
    super(message, { code: "connect_failed", retryable: true, ...options });
  }
}

/** The server's `error` message: `code`, `utterance`, `field` and `retryAfterS` are its own. */
export class ServerError extends VoxwireError {
  constructor(body) {
    const code = String(body.code);
    super(`${code}: ${body.message}`, { code, retryable: Boolean(body.retryable) });
    this.reason = String(body.message);
    this.utterance = body.utterance ?? null;
    this.field = body.field ?? null;
    this.retryAfterS = body.retry_after_s ?? null;
  }
}

/** What came contradicts the protocol. The connection is closed: nothing after it can be trusted. */
export class ProtocolViolation extends VoxwireError {
  constructor(message, options = {}) {
    super(message, { code: "protocol_violation", ...options });
  }
}

/** The connection is over and no sentinel came: what was heard is not the whole utterance. */
export class StreamTruncated extends VoxwireError {
  constructor(message, closeCode = null) {
    super(message, { code: "stream_truncated", retryable: true });
    this.closeCode = closeCode;
  }
}

/** The browser lacks something, or refuses it to this page. */
export class AudioUnavailable extends VoxwireError {
  constructor(message, options = {}) {
    super(message, { code: "audio_unavailable", ...options });
  }
}
