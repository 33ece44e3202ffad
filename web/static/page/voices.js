/** The voice picker. */

import { SAMPLE } from "./texts.js";

export class Voices {
  #dialog;
  #list;
  #button;
  #name;
  #speaker;
  #onpick;
  #voices = [];

  constructor({ dialog, list, button, name }, speaker, onpick) {
    this.#dialog = dialog;
    this.#list = list;
    this.#button = button;
    this.#name = name;
    this.#speaker = speaker;
    this.#onpick = onpick;
    button.addEventListener("click", () => {
      dialog.showModal();
      list.querySelector("input:checked")?.focus({ focusVisible: false });
    });
    dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close());
    dialog.addEventListener("close", () => speaker.lines.some(({ kind }) => kind === "preview") && speaker.interrupt());
  }

  /** Ask the server which there are; `chosen` is the session's. */
  async load(chosen) {
    const answer = await fetch("/v1/voices", { signal: AbortSignal.timeout(10_000) });
    if (!answer.ok) return;
    this.#voices = (await answer.json()).voices;
    this.#list.replaceChildren(...this.#voices.map((voice) => this.#row(voice, chosen)));
    this.show(chosen);
  }

  show(chosen) {
    this.#name.textContent = title(chosen);
    this.#button.setAttribute("aria-label", `Voice: ${title(chosen)}. Change`);
    for (const input of this.#list.querySelectorAll("input")) input.checked = input.value === chosen;
  }

  #row(voice, chosen) {
    const row = document.createElement("div");
    row.className = "voice-row";
    const label = row.appendChild(document.createElement("label"));
    const input = label.appendChild(document.createElement("input"));
    Object.assign(input, { type: "radio", name: "voice", value: voice.name, checked: voice.name === chosen });
    input.addEventListener("change", () => {
      this.show(voice.name);
      this.#onpick(voice.name);
      this.#hear(voice.name);
    });
    const words = label.appendChild(document.createElement("span"));
    words.append(tagged("b", title(voice.name)), tagged("small", voice.description));
    const hear = row.appendChild(document.createElement("button"));
    Object.assign(hear, { type: "button", className: "hear", textContent: "Hear" });
    hear.setAttribute("aria-label", `Hear ${title(voice.name)}`);
    hear.addEventListener("click", () => this.#hear(voice.name));
    return row;
  }

  #hear(name) {
    this.#speaker.interrupt();
    this.#speaker.preview(name, `Hello, I am ${title(name)}. ${SAMPLE}`);
  }
}

function title(name) {
  return name.charAt(0).toUpperCase() + name.slice(1).replaceAll(/[_-]/g, " ");
}

function tagged(tag, text) {
  const made = document.createElement(tag);
  made.textContent = text;
  return made;
}
