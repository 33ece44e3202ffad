/** The WebSocket transport: JSON text frames for control, binary frames for audio. */

import { endpoint } from "./address.js";
import { ConnectFailed } from "./errors.js";

const SUBPROTOCOL = "voxwire.v1";

/**
 * A transport carries the protocol's messages and says when it is over. Every transport has this shape:
 *
 * - `media`: "frames" when audio comes as binary frames through `onframe`, "track" when the browser receives it
 *   as a MediaStreamTrack; then `createPlayer(session)` resolves with what plays it: a `Player`'s interface;
 * - `open(signal)`: resolves once messages can be sent; rejects with ConnectFailed;
 * - `send(message)`, `close()`; `onmessage(body)`, `onframe(buffer)`, `onclose({ code, reason })`.
 */
export class WebSocketTransport {
  static label = "WebSocket";

  static get supported() {
    return typeof WebSocket === "function";
  }

  /** @param {string | URL} [url] of the server: its page's address, or that of `/v1/stream` */
  constructor(url = globalThis.location?.href) {
    this.url = endpoint(url, "ws", "/v1/stream");
    this.media = "frames";
    this.onmessage = this.onframe = this.onclose = () => {};
    this.#socket = null;
  }

  #socket;

  /** @param {AbortSignal} signal gives up */
  open(signal) {
    return new Promise((resolve, reject) => {
      const socket = new WebSocket(this.url, SUBPROTOCOL);
      const giveUp = () => {
        socket.close();
        reject(new ConnectFailed(`${this.url} did not answer in time`));
      };
      socket.binaryType = "arraybuffer";
      socket.onopen = () => {
        signal.removeEventListener("abort", giveUp);
        resolve();
      };
      socket.onmessage = ({ data }) => (typeof data === "string" ? this.onmessage(data) : this.onframe(data));
      socket.onclose = ({ code, reason }) => {
        signal.removeEventListener("abort", giveUp);
        // Before the opening this is the refusal; browsers do not tell a page why.
        reject(new ConnectFailed(`${this.url} cannot be opened`));
        this.onclose({ code, reason });
      };
      signal.addEventListener("abort", giveUp, { once: true });
      this.#socket = socket;
    });
  }

  /** @param {object} message */
  send(message) {
    // A socket that is closing takes and drops it; `onclose` then says what became of the session.
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  close(code = 1000) {
    this.#socket?.close(code);
  }
}
