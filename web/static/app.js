/** The page: wires the text, the voice and the instruments together. */

import { canDecodeOpus } from "./voxwire.js";
import { LatencyStrip } from "./page/latency.js";
import { sentence } from "./page/plain.js";
import { Scope } from "./page/scope.js";
import { Sheet } from "./page/sheet.js";
import { Speaker, TRANSPORTS } from "./page/speaker.js";
import { TEXTS } from "./page/texts.js";
import { Typing } from "./page/typing.js";
import { Voices } from "./page/voices.js";
import { write } from "./page/writer.js";

const byId = (id) => document.getElementById(id);
const FULL_BUFFER_MS = 4000;

const settings = { voice: null, encoding: "auto", transport: "websocket", budgetMs: Number(byId("budget").value) };
const sheet = new Sheet(byId("sheet"), byId("ink"), byId("sheet-frame"));
const speaker = new Speaker(settings);
const scope = new Scope(byId("scope"), byId("scale"), () => speaker.speaking && !speaker.player.locked);
const latency = new LatencyStrip(byId("latency"), byId("latency-empty"), settings.budgetMs);
const voices = new Voices(
  { dialog: byId("voices"), list: byId("voice-list"), button: byId("voice"), name: byId("voice-name") },
  speaker,
  (name) => speaker.setVoice(name),
);
let writing = null;

// --- text to the voice ---

function begin(base, kind) {
  const line = speaker.say(kind);
  if (!line) return null;
  note("");
  line.stretch = sheet.begin(base);
  scope.wake();
  return line;
}

const typing = new Typing(sheet, {
  begin: (base) => begin(base, "typed"),
  interrupt: () => {
    const lines = speaker.lines.filter(({ stretch }) => stretch);
    if (!lines.length) return null;
    const [{ playback, stretch }] = lines;
    const heard = stretch.base + playback.charsHeard();
    for (const line of lines) line.edited = true;
    speaker.interrupt();
    return heard;
  },
});

async function letModelWrite(text, button) {
  stop();
  sheet.text = "";
  note("");
  const line = begin(0, "model");
  if (!line) return;
  const stopper = new AbortController();
  writing = stopper;
  sheet.writing = true;
  button?.setAttribute("aria-current", "true");
  speaker.addEventListener("over", ({ detail }) => detail === line && stopper.abort(), { signal: stopper.signal });
  const all = await write(text, {
    rate: () => Number(byId("rate").value),
    signal: stopper.signal,
    onpiece: (piece) => {
      sheet.append(piece);
      line.utterance.send(piece);
      line.stretch.end = sheet.text.length;
      sheet.paint();
    },
  });
  if (all) line.utterance.end();
  stopper.abort();
  button?.removeAttribute("aria-current");
  if (writing !== stopper) return; // another text is being written by now
  writing = null;
  sheet.writing = false;
  typing.settle();
  show();
}

function speak() {
  speaker.unlock();
  if (busy()) stop();
  else if (sheet.text.trim()) typing.speak();
  else letModelWrite(TEXTS[0].text, byId("texts").querySelector("button"));
}

function stop() {
  writing?.abort();
  const stopped = speaker.interrupt();
  typing.settle();
  return stopped;
}

const busy = () => speaker.speaking || writing !== null;

// --- the voice to the text ---

function follow() {
  for (const { stretch, playback, utterance } of speaker.lines) {
    if (!stretch) continue;
    const now = playback.wordNow;
    stretch.now = now && { start: stretch.base + now.charStart, end: stretch.base + now.charEnd };
    stretch.inked = Math.max(stretch.inked, stretch.base + Math.min(playback.charsHeard(), utterance.text.length));
  }
  sheet.paint();
  gauge();
}

function over(line) {
  const { stretch, outcome, error, playback, utterance } = line;
  typing.closed(line);
  if (stretch) {
    stretch.now = null;
    stretch.end = Math.min(stretch.end, stretch.base + utterance.text.length);
    if (outcome && !line.edited) {
      stretch.cut = stretch.base + outcome.heardText.length;
      tellHeard(outcome);
    } else if (error) {
      stretch.cut = stretch.base + playback.charsHeard();
    } else if (!outcome) {
      stretch.inked = stretch.end;
    }
    if (utterance.done?.reason === "empty") note("There was nothing to speak in that.");
  }
  sheet.paint();
  latency.add(line);
  scope.wake();
  show();
}

function tellHeard({ heardText, unheardText }) {
  const left = unheardText.match(/\S*[\p{L}\p{N}]\S*/gu)?.length ?? 0;
  const last = heardText.trim().split(/\s+/).slice(-4).join(" ");
  if (!left) {
    note("Stopped at the end: all of it was heard.");
    return;
  }
  const words = left === 1 ? "One word was" : `${left} words were`;
  if (last) note("Stopped. The last you heard was ", `“${last}”`, `. ${words} not heard.`);
  else note(`Stopped before a word was heard. ${words} not heard.`);
}

// --- what is shown ---

function note(text, strong = "", rest = "") {
  const words = strong ? [Object.assign(document.createElement("strong"), { textContent: strong }), rest] : [];
  byId("note").replaceChildren(text, ...words);
}

function show() {
  const button = byId("speak");
  const text = busy() ? "Interrupt" : "Speak";
  if (byId("speak-text").textContent !== text) byId("speak-text").textContent = text;
  button.toggleAttribute("data-busy", busy());
  button.disabled = !speaker.ready && !busy();
}

function showState({ state, text }) {
  const place = byId("state");
  place.dataset.state = state;
  if (byId("state-text").textContent !== text) byId("state-text").textContent = text;
  show();
  if (state === "ready") {
    gauge();
    typing.resume();
  }
}

function gauge() {
  const ahead = speaker.player ? Math.round(speaker.player.bufferedMs) : 0;
  byId("buffer-fill").style.transform = `scaleX(${Math.min(1, ahead / FULL_BUFFER_MS)})`;
  byId("buffer-mark").style.left = `${(100 * (speaker.player?.targetMs ?? 60)) / FULL_BUFFER_MS}%`;
  byId("buffer-text").textContent = ahead < 1000 ? `${ahead} ms ahead` : `${(ahead / 1000).toFixed(1)} s ahead`;
  const meter = byId("buffer");
  meter.setAttribute("aria-valuenow", String(Math.min(FULL_BUFFER_MS, ahead)));
  meter.setAttribute("aria-valuetext", `${ahead} milliseconds`);
}

async function offer() {
  const opus = await canDecodeOpus();
  byId("encoding").append(
    ...(opus ? [new Option("Opus", "auto")] : []),
    new Option("PCM", "pcm_s16le"),
  );
  const ways = Object.entries(TRANSPORTS).filter(([, transport]) => transport.supported);
  byId("transport").append(...ways.map(([name, { label }]) => new Option(label, name)));
  for (const { title, text } of TEXTS) {
    const item = byId("texts").appendChild(document.createElement("li"));
    const button = item.appendChild(document.createElement("button"));
    Object.assign(button, { type: "button", textContent: title });
    button.addEventListener("click", () => {
      speaker.unlock();
      letModelWrite(text, button);
    });
  }
}

function about({ ready }) {
  const { encoding, sample_rate: rate, bitrate } = ready.format;
  const size = bitrate ? `, ${bitrate / 1000} kbit/s` : "";
  const codec = encoding === "opus" ? "Opus" : "PCM";
  byId("about").textContent = `Model ${ready.model} · ${codec} ${rate / 1000} kHz${size} · voice prompt of ${ready.prefix.tokens} tokens, ${ready.prefix.cached} cached`;
}

// --- events ---

speaker.addEventListener("state", ({ detail }) => showState(detail));
speaker.addEventListener("position", follow);
speaker.addEventListener("line", show);
speaker.addEventListener("over", ({ detail }) => over(detail));
speaker.addEventListener("broken", ({ detail }) => {
  writing?.abort();
  note(`${sentence(detail)} Your text is safe; it can be spoken again once the server is back.`);
});
speaker.addEventListener("player", ({ detail }) => scope.attach(detail));
speaker.addEventListener("session", ({ detail }) => {
  about(detail);
  voices.load(detail.ready.voice).catch(() => voices.show(detail.ready.voice));
});
speaker.addEventListener("warning", ({ detail }) => {
  if (detail.code === "text_dropped") note(`Not spoken: ${detail.message}`);
});

byId("sheet").addEventListener("input", () => typing.edited());
byId("speak").addEventListener("click", speak);
byId("live").addEventListener("change", ({ target }) => (typing.live = target.checked));
byId("rate").addEventListener("input", ({ target }) => {
  byId("rate-out").textContent = target.value === "1" ? "1 word a second" : `${target.value} words a second`;
});
byId("budget").addEventListener("change", ({ target }) => {
  latency.budget = Number(target.value);
  speaker.setBudget(Number(target.value));
});
byId("encoding").addEventListener("change", ({ target }) => {
  settings.encoding = target.value;
  speaker.reopen();
});
byId("transport").addEventListener("change", ({ target }) => {
  settings.transport = target.value;
  speaker.reopen();
});
for (const view of ["spectrum", "wave"]) {
  byId(`view-${view}`).addEventListener("click", () => {
    scope.view = view;
    for (const other of ["spectrum", "wave"]) {
      byId(`view-${other}`).setAttribute("aria-pressed", String(other === view));
    }
  });
}
for (const gesture of ["pointerup", "keydown"]) addEventListener(gesture, () => speaker.unlock(), { capture: true });

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || byId("voices").open) return;
  const { target, key, repeat } = event;
  if (key === "Escape") {
    stop();
  } else if (key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    if (repeat) return;
    if (typing.open) typing.speak();
    else speak();
  } else if (key === " " && !repeat && busy() && mayInterrupt(target)) {
    event.preventDefault();
    stop();
  }
});

/** Where the space bar has no other meaning. */
function mayInterrupt(target) {
  if (target instanceof HTMLTextAreaElement) return target.readOnly;
  return !target.closest("button, select, summary, a, input[type=checkbox]");
}

await offer();
show();
gauge();
speaker.open();

export { speaker }; // for the console
