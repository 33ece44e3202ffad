/**
 * voxwire in a browser: text goes in while it is being written, speech comes out at once.
 *
 *     import { connect, Player } from "./voxwire.js";
 *
 *     const session = await connect({ url: "https://speech.example", voice: "grace", words: true });
 *     const player = await Player.create(session.format);
 *     button.onclick = () => player.unlock();          // browsers ask for a gesture before they play
 *
 *     const utterance = session.utterance();
 *     const playback = player.play(utterance);
 *     for await (const piece of languageModel) utterance.send(piece);
 *     utterance.end();
 *     player.addEventListener("word", ({ detail }) => highlight(detail.word.charStart, detail.word.charEnd));
 *     await utterance.finished;                         // rejects unless the sentinel came and all adds up
 *
 *     const { heardText, unheardText } = await playback.interrupt();   // barge-in
 *
 * Without a player, `utterance.packets()` gives the checked packets. Everything the protocol promises is checked:
 * sequence numbers, times, the sentinel, lengths and checksum; what breaks it is thrown as a `VoxwireError`.
 * No dependencies. Types are in `voxwire.d.ts`.
 */

export { canDecodeOpus, decodedRate } from "./voxwire/decoder.js";
export {
  AudioUnavailable,
  ConnectFailed,
  ProtocolViolation,
  ServerError,
  StreamTruncated,
  VoxwireError,
} from "./voxwire/errors.js";
export { Playback, Player } from "./voxwire/player.js";
export { Session, connect } from "./voxwire/session.js";
export { Utterance } from "./voxwire/utterance.js";
export { WebRtcTransport } from "./voxwire/webrtc.js";
export { WebSocketTransport } from "./voxwire/websocket.js";
