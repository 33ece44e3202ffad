/** Where the time of each utterance went, from its text to its sound, against the budget. */

const ROWS = 12;
const LABEL_SHARE = 0.085;

/** The server's parts, as the protocol names them, and the page's own two. */
const PARTS = {
  segment: ["wait", "finding whole words in the text"],
  queue: ["wait", "waiting for its turn"],
  prefill: ["make soft", "the speech model reads voice and text"],
  decode: ["make", "the speech model's first tokens"],
  vocode: ["make soft", "tokens become sound"],
  encode: ["make", "the first packet is encoded"],
  send: ["wait", "handing it to the network"],
  packet: ["make soft", "from the text to the first packet; the parts are only told of what is spoken to its end"],
  network: ["after", "to the server and back"],
  player: ["after", "collecting enough to play without gaps"],
};

/** What is known of a line, in ms; null without any sound. */
export function measure({ utterance, playback }) {
  const { firstPacketAt, sentAt, done } = utterance;
  if (firstPacketAt === null) return null;
  const server = done?.ttfp_ms ?? null;
  // The text that made speech possible: the last that was sent before the server's clock began to run.
  const began = firstPacketAt - (server ?? 0);
  const sent = sentAt.findLast((at) => at <= began) ?? sentAt[0];
  const parts = { ...(done?.ttfp_parts ?? {}) };
  if (server === null) parts.packet = firstPacketAt - sent;
  else parts.network = Math.max(0, began - sent);
  if (playback.heardAt !== null) parts.player = Math.max(0, playback.heardAt - firstPacketAt);
  const heard = playback.heardAt === null ? null : playback.heardAt - sent;
  return { server, parts, arrived: firstPacketAt - sent, heard, gaps: playback.underruns };
}

export class LatencyStrip {
  #list;
  #empty;
  #rows = [];
  #budget;

  constructor(list, empty, budgetMs) {
    this.#list = list;
    this.#empty = empty;
    this.#budget = budgetMs;
  }

  set budget(ms) {
    this.#budget = ms;
    this.#layout();
  }

  /** A line is over. */
  add(line) {
    const figures = measure(line);
    if (!figures) return;
    const row = makeRow(line.utterance.text.trim(), figures);
    this.#empty.hidden = true;
    this.#rows.unshift(row);
    this.#list.prepend(row.item);
    for (const old of this.#rows.splice(ROWS)) old.item.remove();
    for (const other of this.#rows) other.details.open = other === row;
    this.#layout();
  }

  /** All rows to one scale, so that they can be compared. */
  #layout() {
    const longest = Math.max(this.#budget * 1.1, ...this.#rows.map(({ figures }) => total(figures)));
    for (const { bars, figures, verdict } of this.#rows) {
      let at = 0;
      for (const bar of bars.querySelectorAll("[data-part]")) {
        const share = figures.parts[bar.dataset.part] / longest;
        bar.style.left = `${at * 100}%`;
        bar.style.width = `${share * 100}%`;
        bar.textContent = share > LABEL_SHARE ? bar.dataset.part : "";
        at += share;
      }
      bars.querySelector(".limit").style.left = `${(this.#budget / longest) * 100}%`;
      verdict.textContent = judge(figures, this.#budget);
    }
  }
}

function total({ parts }) {
  return Object.values(parts).reduce((sum, ms) => sum + ms, 0);
}

function judge({ server, arrived }, budget) {
  if (server === null) return `first packet ${figure(arrived)}`;
  return server <= budget ? `first packet ${figure(server)}` : `${figure(server)}, over budget`;
}

function makeRow(text, figures) {
  const item = document.createElement("li");
  const details = item.appendChild(document.createElement("details"));
  const summary = details.appendChild(document.createElement("summary"));
  const said = summary.appendChild(element("span", "said", text));
  said.title = text;
  const bars = summary.appendChild(element("span", "bars"));
  bars.setAttribute("aria-hidden", "true");
  for (const name of Object.keys(PARTS)) {
    if (!(name in figures.parts)) continue;
    const bar = bars.appendChild(element("span", PARTS[name][0]));
    bar.dataset.part = name;
  }
  bars.append(element("span", "limit"));
  const sum = summary.appendChild(element("span", "sum"));
  const verdict = sum.appendChild(element("span", "verdict"));
  const list = details.appendChild(element("dl", "parts"));
  for (const [name, ms] of Object.entries(figures.parts)) {
    const entry = list.appendChild(element("div"));
    entry.title = PARTS[name][1];
    entry.append(element("dt", "", name), element("dd", "", figure(ms)));
  }
  if (figures.heard !== null) {
    const entry = list.appendChild(element("div"));
    entry.append(element("dt", "", "text to ear"), element("dd", "", figure(figures.heard)));
  }
  const gaps = list.appendChild(element("div"));
  gaps.title = "how often the player ran out of sound: waiting for text, or for the server";
  gaps.append(element("dt", "", "pauses for want of sound"), element("dd", "", String(figures.gaps)));
  return { item, details, bars, verdict, figures };
}

function element(tag, className = "", text = "") {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text) made.textContent = text;
  return made;
}

function figure(ms) {
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
}
