/**
 * The player's inside: a ring of samples, read without a gap from one utterance to the next. It runs on the audio
 * thread where there is one to be had; its messages are the same without.
 *
 * In:  begin {id} · push {id, samples} · end {id, length} · stop {id} · target {frames} · tap {on}
 * Out: started, dry, resumed, ended, stopped {id, frame, played} ·
 *      state {id, frame, played, buffered} · tap {frame, samples}
 * `frame` is on the context's clock, `played` counts from the utterance's start.
 */

/** Seconds of audio it holds at most; pushing more overwrites what was not played. */
export const RING_S = 20;
const REPORT_S = 0.02;
const QUIET_REPORTS = 60;
const FADE_S = 0.005;
const TAP_FRAMES = 2048;

class Track {
  constructor(id, start) {
    this.id = id;
    this.start = start; // of it in the ring, counted from the player's start
    this.written = 0;
    this.playable = 0; // the last packet is held back: only the end tells how much of it is padding
    this.length = null;
    this.played = 0;
    this.begun = false;
    this.filling = true;
    this.dropped = false;
  }
}

export class PlayerCore {
  /**
   * @param {number} rate of the samples, per second
   * @param {number} target samples to collect before an utterance starts
   * @param {(message: object) => void} post
   */
  constructor(rate, target, post) {
    this.rate = rate;
    this.post = post;
    this.frame = 0; // of the block being made, on the context's clock
    this.ring = new Float32Array(RING_S * rate);
    this.write = 0;
    this.tracks = [];
    this.target = target;
    this.tail = new Float32Array(0); // fades out what was cut; not part of what was played
    this.last = 0;
    this.sinceReport = 0;
    this.quiet = QUIET_REPORTS;
    this.tap = null;
  }

  /** Take a message. */
  receive(message) {
    this[`on_${message.type}`](message);
  }

  on_begin({ id }) {
    this.tracks.push(new Track(id, this.write));
    this.quiet = 0;
  }

  on_push({ id, samples }) {
    const track = this.find(id);
    if (!track) return;
    for (let done = 0; done < samples.length; ) {
      const at = this.write % this.ring.length;
      const count = Math.min(samples.length - done, this.ring.length - at);
      this.ring.set(samples.subarray(done, done + count), at);
      this.write += count;
      done += count;
    }
    track.playable = track.written;
    track.written += samples.length;
  }

  on_end({ id, length }) {
    const track = this.find(id);
    if (!track) return;
    track.length = track.playable = Math.min(length, track.written);
    this.write = track.start + track.length;
  }

  on_stop({ id }) {
    const track = this.find(id);
    if (!track) return;
    if (track === this.tracks[0] && track.begun && !track.filling) this.fade(track);
    track.dropped = true;
    if (track === this.tracks.at(-1)) this.write = track.start + track.played;
    this.tell("stopped", track, 0);
    this.tracks = this.tracks.filter((other) => other !== track);
  }

  on_target({ frames }) {
    this.target = frames;
  }

  on_tap({ on }) {
    this.tap = on ? { samples: new Float32Array(TAP_FRAMES), filled: 0, frame: this.frame } : null;
  }

  find(id) {
    return this.tracks.find((track) => track.id === id);
  }

  tell(type, track, offset, more = {}) {
    this.post({ type, id: track.id, frame: this.frame + offset, played: track.played, ...more });
  }

  /** Fill `out`, which begins at `frame` of the context's clock and is all zeros. */
  process(out, frame) {
    this.frame = frame;
    let at = this.play_tail(out);
    while (at < out.length) {
      const track = this.tracks[0];
      if (!track) break;
      if (track.filling) {
        if (track.length === null && track.written - track.played < this.target) break;
        track.filling = false;
        this.tell(track.begun ? "resumed" : "started", track, at);
        track.begun = true;
      }
      const count = Math.min(out.length - at, track.playable - track.played);
      this.read(track, out, at, count);
      at += count;
      if (track.played === track.length) {
        this.tell("ended", track, at);
        this.tracks.shift();
        this.quiet = 0;
      } else if (!count) {
        track.filling = true;
        this.decay();
        this.tell("dry", track, at);
        at += this.play_tail(out, at);
        break;
      }
    }
    if (at > 0) this.last = out[at - 1];
    this.report(out);
  }

  read(track, out, at, count) {
    const from = (track.start + track.played) % this.ring.length;
    const first = Math.min(count, this.ring.length - from);
    out.set(this.ring.subarray(from, from + first), at);
    if (first < count) out.set(this.ring.subarray(0, count - first), at + first);
    track.played += count;
  }

  /** What would come next, fading to nothing. */
  fade(track) {
    const count = Math.min(Math.round(FADE_S * this.rate), track.written - track.played);
    const played = track.played;
    this.tail = new Float32Array(count);
    this.read(track, this.tail, 0, count);
    track.played = played;
    for (let i = 0; i < count; i += 1) this.tail[i] *= 1 - (i + 1) / count;
  }

  /** From the last sample to nothing: running dry should not click. */
  decay() {
    const last = this.last;
    this.tail = Float32Array.from({ length: 128 }, (_, i) => last * (1 - (i + 1) / 128));
  }

  play_tail(out, at = 0) {
    const count = Math.min(this.tail.length, out.length - at);
    out.set(this.tail.subarray(0, count), at);
    this.tail = this.tail.subarray(count);
    return count;
  }

  report(out) {
    if (this.tap) this.record(out);
    this.sinceReport += out.length;
    if (this.sinceReport < REPORT_S * this.rate || this.quiet >= QUIET_REPORTS) return;
    this.sinceReport = 0;
    const [track] = this.tracks;
    if (!track) this.quiet += 1;
    this.post({
      type: "state",
      id: track?.id ?? null,
      frame: this.frame + out.length,
      played: track?.played ?? 0,
      buffered: this.tracks.reduce((sum, { written, played }) => sum + written - played, 0),
    });
  }

  record(out) {
    const { tap } = this;
    // A browser that is late leaves blocks out.
    const follows = this.frame === tap.frame + tap.filled;
    if (tap.filled && (!follows || tap.filled + out.length > tap.samples.length)) this.hand_over(tap);
    if (!tap.filled) tap.frame = this.frame;
    if (out.length > tap.samples.length) tap.samples = new Float32Array(out.length);
    tap.samples.set(out, tap.filled);
    tap.filled += out.length;
    if (tap.filled >= tap.samples.length) this.hand_over(tap);
  }

  hand_over(tap) {
    this.post({ type: "tap", frame: tap.frame, samples: tap.samples.slice(0, tap.filled) });
    tap.filled = 0;
  }
}
