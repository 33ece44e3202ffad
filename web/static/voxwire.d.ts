/** Types of `voxwire.js`; what things do is said there. */

export type Encoding = "opus" | "pcm_s16le" | "pcm_f32le" | "mulaw" | "alaw";

export interface FormatRequest {
  encoding?: Encoding;
  sample_rate?: number;
  frame_ms?: number;
  bitrate?: number;
  complexity?: number;
  vbr?: boolean;
  application?: "voip" | "audio" | "lowdelay";
  fec?: boolean;
  packet_loss?: number;
  dtx?: boolean;
}

/** What is not given is the server's to choose. */
export interface SessionOptions {
  voice?: string;
  ttfp_budget_ms?: number;
  on_budget_miss?: "continue" | "fail";
  words?: boolean;
  sampling?: {
    temperature?: number;
    top_p?: number;
    top_k?: number;
    repetition_penalty?: number;
    seed?: number;
  };
  language?: string;
  speed?: number;
  segment?: { mode?: "auto" | "clause" | "sentence" | "manual"; min_chars?: number };
}

export interface ConnectOptions extends SessionOptions {
  /** The server: default is the one that serves this page. */
  url?: string | URL;
  /** Another transport than a WebSocket to `url`. */
  transport?: Transport;
  format?: Encoding | FormatRequest;
  /** Bounds every wait for an answer that is due; default 30 000. */
  timeoutMs?: number;
  /** How often to hold an idle session open; default 20 000, 0: not at all. */
  keepaliveMs?: number;
}

export function connect(options?: ConnectOptions): Promise<Session>;

/** The format a session agreed on; times and lengths are in samples at `sampleRate`. */
export interface StreamFormat {
  readonly encoding: Encoding;
  readonly sampleRate: number;
  readonly frameMs: number;
  readonly bitrate: number | null;
  /** Decoded samples to be dropped from the start of each utterance. */
  readonly preSkip: number;
}

/** The server's `session.ready`, as it came. */
export interface Ready {
  readonly type: "session.ready";
  readonly session: string;
  readonly protocol: string | number;
  readonly model: string;
  readonly voice: string;
  readonly format: {
    readonly encoding: Encoding;
    readonly sample_rate: number;
    readonly frame_ms: number;
    readonly bitrate: number | null;
    readonly pre_skip: number;
  };
  readonly prefix: { readonly tokens: number; readonly cached: number };
  readonly limits: Readonly<Record<string, number>>;
}

export interface SessionEvents {
  warning: CustomEvent<{ code: string; message: string }>;
  close: CustomEvent<VoxwireError | null>;
}

export class Session extends EventTarget {
  private constructor();
  readonly ready: Ready;
  readonly closed: boolean;
  readonly format: StreamFormat;
  readonly transport: Transport;
  utterance(name?: string): Utterance;
  update(changes: SessionOptions): void;
  keepalive(): void;
  close(): void;
  addEventListener<K extends keyof SessionEvents>(
    type: K,
    listener: (event: SessionEvents[K]) => void,
    options?: boolean | AddEventListenerOptions,
  ): void;
  addEventListener(
    type: string,
    listener: EventListenerOrEventListenerObject | null,
    options?: boolean | AddEventListenerOptions,
  ): void;
}

/** One checked codec packet. */
export interface Packet {
  readonly payload: Uint8Array;
  readonly sequence: number;
  readonly pts: number;
  readonly samples: number;
}

/** `charStart` and `charEnd` are UTF-16 units of the utterance's text. */
export interface Word {
  readonly text: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly charStart: number;
  readonly charEnd: number;
}

/** The server's `utterance.done`, as it came. */
export interface Done {
  readonly type: "utterance.done";
  readonly utterance: string;
  readonly reason: "complete" | "empty";
  readonly audio_ms: number;
  readonly samples: number;
  readonly frames: number;
  readonly crc32: number;
  readonly ttfp_ms: number | null;
  readonly ttfp_parts: Readonly<
    Record<"segment" | "queue" | "prefill" | "decode" | "vocode" | "encode" | "send", number>
  > | null;
  readonly budget_met: boolean | null;
  readonly text_chars: number;
  readonly usage: {
    readonly prompt_tokens: number;
    readonly cached_tokens: number;
    readonly codec_tokens: number;
  };
}

/** The server's `utterance.cancelled`, as it came. `heard_text + unheard_text` is the utterance's text. */
export interface Cancelled {
  readonly utterance: string;
  readonly sent_ms: number;
  readonly heard_ms: number;
  readonly heard_text: string;
  readonly unheard_text: string;
  readonly clock: "client" | "transport" | "sent";
}

export interface UtteranceEvents {
  start: Event;
  packet: CustomEvent<Packet>;
  words: CustomEvent<Word[]>;
  over: Event;
}

export class Utterance extends EventTarget {
  private constructor();
  readonly name: string;
  readonly format: StreamFormat;
  readonly text: string;
  readonly words: readonly Word[];
  readonly started: boolean;
  readonly textEnded: boolean;
  readonly over: boolean;
  readonly done: Done | null;
  readonly cancelled: Cancelled | null;
  /** Length in samples at the format's rate, once the sentinel told it. */
  readonly samples: number | null;
  /** `performance.now()` of each text message. */
  readonly sentAt: readonly number[];
  readonly firstPacketAt: number | null;
  readonly finished: Promise<Done | Cancelled>;
  send(text: string): void;
  flush(): void;
  end(): void;
  cancel(options?: { playedMs?: number }): Promise<Done | Cancelled>;
  packets(): AsyncGenerator<Packet, void, undefined>;
  addEventListener<K extends keyof UtteranceEvents>(
    type: K,
    listener: (event: UtteranceEvents[K]) => void,
    options?: boolean | AddEventListenerOptions,
  ): void;
  addEventListener(
    type: string,
    listener: EventListenerOrEventListenerObject | null,
    options?: boolean | AddEventListenerOptions,
  ): void;
}

export interface PlayerEvents {
  started: CustomEvent<{ playback: Playback }>;
  word: CustomEvent<{ playback: Playback; word: Word }>;
  dry: CustomEvent<{ playback: Playback }>;
  ended: CustomEvent<{ playback: Playback; error: null }>;
  stopped: CustomEvent<{ playback: Playback; error: null }>;
  failed: CustomEvent<{ playback: Playback; error: VoxwireError }>;
  position: CustomEvent<object>;
}

export class Player extends EventTarget {
  private constructor();
  static readonly supported: boolean;
  static create(format: StreamFormat, options?: { targetMs?: number }): Promise<Player>;
  readonly context: AudioContext;
  readonly output: AudioNode;
  readonly locked: boolean;
  readonly bufferedMs: number;
  readonly targetMs: number;
  readonly outputLatencyS: number;
  unlock(): Promise<void>;
  play(utterance: Utterance): Playback;
  tap(callback: ((block: { frame: number; samples: Float32Array }) => void) | null): void;
  close(): Promise<void>;
  addEventListener<K extends keyof PlayerEvents>(
    type: K,
    listener: (event: PlayerEvents[K]) => void,
    options?: boolean | AddEventListenerOptions,
  ): void;
  addEventListener(
    type: string,
    listener: EventListenerOrEventListenerObject | null,
    options?: boolean | AddEventListenerOptions,
  ): void;
}

export class Playback {
  private constructor();
  readonly utterance: Utterance;
  readonly state: "waiting" | "playing" | "dry" | "ended" | "stopped" | "failed";
  readonly over: boolean;
  /** Samples given to the output, at the utterance's format's rate. */
  readonly played: number;
  readonly underruns: number;
  readonly heardMs: number;
  readonly heardAt: number | null;
  readonly startFrame: number | null;
  readonly endFrame: number | null;
  readonly wordNow: { charStart: number; charEnd: number; certain: boolean } | null;
  charsHeard(heardMs?: number): number;
  stop(): void;
  interrupt(): Promise<{ heardMs: number; heardText: string; unheardText: string }>;
}

/** What a transport has to be; see `WebSocketTransport`. */
export interface Transport {
  readonly media: "frames" | "track";
  /** For a "track": what plays it. */
  createPlayer?(session: Session): Promise<Player>;
  onmessage: (text: string) => void;
  onframe: (buffer: ArrayBuffer) => void;
  onclose: (closed: { code: number; reason: string }) => void;
  open(signal: AbortSignal): Promise<void>;
  send(message: object): void;
  close(code?: number): void;
}

export class WebSocketTransport implements Transport {
  static readonly label: string;
  static readonly supported: boolean;
  constructor(url?: string | URL);
  readonly url: string;
  readonly media: "frames";
  onmessage: (text: string) => void;
  onframe: (buffer: ArrayBuffer) => void;
  onclose: (closed: { code: number; reason: string }) => void;
  open(signal: AbortSignal): Promise<void>;
  send(message: object): void;
  close(code?: number): void;
}

/** Audio comes as a track; what plays it has `Player`'s interface. */
export class WebRtcTransport implements Transport {
  static readonly label: string;
  static readonly supported: boolean;
  constructor(url?: string | URL);
  readonly url: string;
  readonly media: "track";
  createPlayer(session?: Session): Promise<Player>;
  onmessage: (text: string) => void;
  onframe: (buffer: ArrayBuffer) => void;
  onclose: (closed: { code: number; reason: string }) => void;
  open(signal: AbortSignal): Promise<void>;
  send(message: object): void;
  close(): void;
}

export function canDecodeOpus(): Promise<boolean>;
export function decodedRate(format: StreamFormat): number;

export class VoxwireError extends Error {
  readonly code: string;
  readonly retryable: boolean;
}
export class ConnectFailed extends VoxwireError {}
export class ServerError extends VoxwireError {
  readonly reason: string;
  readonly utterance: string | null;
  readonly field: string | null;
  readonly retryAfterS: number | null;
}
export class ProtocolViolation extends VoxwireError {}
export class StreamTruncated extends VoxwireError {
  readonly closeCode: number | null;
}
export class AudioUnavailable extends VoxwireError {}
