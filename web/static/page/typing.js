/** Turns what somebody types into text for the voice: words once they are finished, the rest after a pause. */

const FLUSH_MS = 800;
const SPEAK_TAIL_MS = 1600;
const END_MS = 2600;

/** Keeps the sheet's text and what was already given to the voice in step. */
export class Typing {
  #sheet;
  #begin;
  #interrupt;
  #line = null;
  #base = 0;
  #given = ""; // of the sheet, from its start: everything that was ever given to the voice
  #timers = [];
  #missed = false;

  /**
   * @param sheet
   * @param begin `(base) => line | null`: the text from `base` on is going to be spoken
   * @param interrupt `() => offset | null`: stop; up to which offset of the sheet it was heard
   */
  constructor(sheet, { begin, interrupt }) {
    this.#sheet = sheet;
    this.#begin = begin;
    this.#interrupt = interrupt;
    this.live = true;
  }

  /** The text has changed by hand. */
  edited() {
    this.#clear();
    this.#reconcile();
    if (!this.live) return;
    this.#give(boundary(this.#sheet.text));
    const { text } = this.#sheet;
    if (text.endsWith("\n")) this.#finish();
    this.#after(FLUSH_MS, () => {
      if (/[\s\p{P}]$/u.test(this.#sheet.text)) this.#giveAll();
    });
    this.#after(SPEAK_TAIL_MS, () => this.#giveAll());
    this.#after(END_MS, () => this.#finish());
  }

  /** Whether what is being spoken may still get more text. */
  get open() {
    return this.#line !== null;
  }

  /** The connection is back: say what was written meanwhile. */
  resume() {
    if (this.#missed && !this.#line) this.edited();
  }

  /** Speak all that was not spoken yet; all of it again when there is nothing new. */
  speak() {
    this.#clear();
    this.#reconcile();
    if (!this.#line && !this.#sheet.text.slice(this.#given.length).trim()) this.restart(0);
    this.#giveAll();
    this.#finish();
  }

  /** From here on, everything after `offset` is new. */
  restart(offset) {
    this.#clear();
    this.#missed = false;
    this.#line = null;
    this.#given = this.#sheet.text.slice(0, offset);
  }

  /** All of the sheet was given by somebody else, or has been cut off: only new text is to be spoken. */
  settle() {
    this.restart(this.#sheet.text.length);
  }

  /** The line is over, whoever ended it. */
  closed(line) {
    if (this.#line === line) this.#line = null;
  }

  /** Words that were spoken (or are about to be) have been changed: go on from the change. */
  #reconcile() {
    const { text } = this.#sheet;
    if (text.startsWith(this.#given)) return;
    let same = 0;
    while (same < text.length && text[same] === this.#given[same]) same += 1;
    const changed = text.slice(0, same).search(/\S*$/u);
    const heard = this.#line ? (this.#interrupt() ?? changed) : changed;
    this.restart(Math.min(changed, heard, text.length));
  }

  #give(until) {
    const piece = this.#sheet.text.slice(this.#given.length, until);
    if (!piece || (!this.#line && !piece.trim())) return;
    if (!this.#line) {
      this.#base = this.#given.length;
      this.#line = this.#begin(this.#base);
      this.#missed = !this.#line;
      if (this.#missed) return; // no connection; the next try takes all of it
    }
    this.#given += piece;
    this.#line.utterance.send(piece);
    this.#line.stretch.end = this.#given.length;
    this.#sheet.paint();
  }

  #giveAll() {
    this.#give(this.#sheet.text.length);
    this.#line?.utterance.flush();
  }

  #finish() {
    this.#give(this.#sheet.text.length);
    this.#line?.utterance.end();
    this.#line = null;
  }

  #after(ms, action) {
    this.#timers.push(setTimeout(action, ms));
  }

  #clear() {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers = [];
  }
}

/** The end of the last word that somebody has clearly finished. */
function boundary(text) {
  return text.search(/\S*$/u);
}
