/** The WebRTC transport: JSON on a data channel, audio on a track. Signalling is one HTTP request. */

import { endpoint } from "./address.js";
import { ConnectFailed, ServerError } from "./errors.js";
import { TrackPlayer } from "./track-player.js";

const LABEL = "voxwire";
const CANDIDATES_AFTER_MS = 1000;
const EOS = 1;

/** See WebSocketTransport for what every transport is. */
export class WebRtcTransport {
  static label = "WebRTC";

  static get supported() {
    return typeof RTCPeerConnection === "function" && TrackPlayer.supported;
  }

  #peer = null;
  #channel = null;
  #receiver = null;
  #location = null;
  #sentinel = null;
  #over = false;

  /** @param {string | URL} [url] of the server: its page's address, or that of `/v1/rtc` */
  constructor(url = globalThis.location?.href) {
    this.url = endpoint(url, "http", "/v1/rtc");
    this.media = "track";
    this.onmessage = this.onframe = this.onclose = () => {};
  }

  /** @param {AbortSignal} signal gives up */
  async open(signal) {
    const peer = (this.#peer = new RTCPeerConnection());
    this.#receiver = peer.addTransceiver("audio", { direction: "recvonly" }).receiver;
    const channel = (this.#channel = peer.createDataChannel(LABEL));
    channel.binaryType = "arraybuffer";
    channel.onmessage = ({ data }) => this.#take(data);
    channel.onclose = () => this.#ended("the data channel was closed");
    peer.onconnectionstatechange = () => {
      if (["failed", "closed"].includes(peer.connectionState)) this.#ended("the connection was lost");
    };
    try {
      await peer.setLocalDescription();
      const answer = await this.#ask(peer.localDescription.sdp, signal);
      await peer.setRemoteDescription({ type: "answer", sdp: answer });
      setTimeout(() => this.#tellCandidates(), CANDIDATES_AFTER_MS);
      await opened(channel, signal);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** What plays the track. */
  createPlayer() {
    return TrackPlayer.create(this.#receiver);
  }

  /** @param {object} message */
  send(message) {
    if (this.#channel?.readyState === "open") this.#channel.send(JSON.stringify(message));
  }

  close() {
    if (this.#over) return;
    this.#over = true;
    this.#peer?.close();
    // The server would notice by itself, but not at once.
    if (this.#location) fetch(this.#location, { method: "DELETE", keepalive: true }).catch(() => {});
  }

  async #ask(sdp, signal) {
    let response;
    try {
      response = await fetch(this.url, {
        method: "POST",
        headers: { "content-type": "application/sdp" },
        body: sdp,
        signal,
      });
    } catch (cause) {
      throw new ConnectFailed(`${this.url} cannot be reached`, { cause });
    }
    if (response.status === 201) {
      this.#location = new URL(response.headers.get("location"), this.url).href;
      return response.text();
    }
    const told = await response.json().catch(() => null);
    throw told?.error
      ? new ServerError({ ...told.error, field: told.error.param })
      : new ConnectFailed(`${this.url} answered with HTTP ${response.status}`);
  }

  /** A server behind a TURN or STUN server of its own has to be told where to send to. */
  #tellCandidates() {
    const peer = this.#peer;
    if (this.#over || peer.connectionState === "connected" || !peer.localDescription) return;
    const wanted = /^a=(ice-ufrag|ice-pwd|candidate):/;
    const lines = peer.localDescription.sdp.split("\r\n").filter((line) => wanted.test(line));
    fetch(this.#location, {
      method: "PATCH",
      headers: { "content-type": "application/trickle-ice-sdpfrag" },
      body: `${[...new Set(lines)].join("\r\n")}\r\n`,
    }).catch(() => {});
  }

  #take(data) {
    if (typeof data !== "string") {
      const view = new DataView(data);
      if (view.byteLength === 16 && view.getUint8(1) & EOS) {
        this.#sentinel = { frames: view.getUint32(4), samples: Number(view.getBigUint64(8)) };
      }
      return;
    }
    if (data.startsWith('{"type":"utterance.done"')) {
      const { frames, samples } = JSON.parse(data);
      const sentinel = this.#sentinel;
      this.#sentinel = null;
      if (sentinel?.frames !== frames || sentinel.samples !== samples) {
        this.#ended("an utterance ended without its sentinel");
        return;
      }
    }
    this.onmessage(data);
  }

  #ended(reason) {
    if (this.#over) return;
    this.close();
    this.onclose({ code: 1006, reason });
  }
}

function opened(channel, signal) {
  return new Promise((resolve, reject) => {
    const failed = () => reject(new ConnectFailed("the peer connection was not made in time"));
    channel.onopen = resolve;
    channel.addEventListener("close", failed, { once: true });
    signal.addEventListener("abort", failed, { once: true });
  });
}
