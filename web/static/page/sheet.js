/** The text on the page: written in pencil, inked as it is spoken. */

const CALM = matchMedia("(prefers-reduced-motion: reduce)");

/**
 * A stretch of the sheet that was given to the voice. Offsets are UTF-16 units of the sheet's text.
 *
 * `inked`: heard up to here; `now`: the word being heard, `{ start, end }`; `cut`: where it was interrupted.
 */
export class Stretch {
  constructor(base) {
    this.base = base;
    this.end = base;
    this.inked = base;
    this.now = null;
    this.cut = null;
  }
}

export class Sheet {
  #area;
  #ink;
  #frame;
  #stretches = [];
  #painted = "";

  constructor(area, ink, frame) {
    this.#area = area;
    this.#ink = ink;
    this.#frame = frame;
    area.addEventListener("input", () => this.paint());
    this.paint();
  }

  get text() {
    return this.#area.value;
  }

  set text(text) {
    this.#area.value = text;
    this.#stretches = [];
    this.paint();
  }

  append(piece) {
    this.#area.value += piece;
    this.paint();
  }

  /** While something else writes, nobody can type, and the space bar is free to interrupt. */
  set writing(on) {
    this.#area.readOnly = on;
    this.#frame.toggleAttribute("data-writing", on);
  }

  /** What follows `base` is spoken (again) from here on. */
  begin(base) {
    this.#stretches = this.#stretches.filter((stretch) => stretch.base < base);
    for (const stretch of this.#stretches) {
      stretch.end = Math.min(stretch.end, base);
      stretch.inked = Math.min(stretch.inked, base);
      if (stretch.cut !== null && stretch.cut >= base) stretch.cut = null;
    }
    const stretch = new Stretch(base);
    this.#stretches.push(stretch);
    return stretch;
  }

  /** Show the marks as they are now. */
  paint() {
    const { text } = this;
    const runs = [];
    let at = 0;
    const run = (kind, until) => {
      const end = Math.min(until, text.length);
      if (end <= at) return;
      runs.push([kind, text.slice(at, end)]);
      at = end;
    };
    for (const { base, end, inked, now, cut } of this.#stretches) {
      run("due", base);
      run("ink", now ? Math.min(now.start, end) : inked);
      if (now) run("now", Math.min(now.end, end));
      if (cut === null) run("due", end);
      else {
        run("ink", cut);
        run("unheard cut", end);
      }
    }
    run("due", text.length);
    const painted = JSON.stringify(runs);
    if (painted === this.#painted) return;
    this.#painted = painted;
    this.#ink.replaceChildren(...runs.map(([kind, part]) => piece(kind, part)));
    if (!text || text.endsWith("\n")) this.#ink.append("\u200b"); // an empty last line has a height too
    this.#follow();
  }

  /** Keep the spoken word in view, unless somebody reads elsewhere. */
  #follow() {
    const word = this.#ink.querySelector(".now");
    if (!word) return;
    const { top, bottom } = word.getBoundingClientRect();
    const room = innerHeight * 0.82;
    if (bottom > room && bottom < innerHeight * 1.6) {
      scrollBy({ top: bottom - room + 40, behavior: CALM.matches ? "auto" : "smooth" });
    } else if (top < 0 && top > -innerHeight * 0.5) {
      scrollBy({ top: top - 40, behavior: CALM.matches ? "auto" : "smooth" });
    }
  }
}

function piece(kind, text) {
  if (kind === "ink") return document.createTextNode(text);
  const span = document.createElement("span");
  span.className = kind;
  span.textContent = text;
  return span;
}
