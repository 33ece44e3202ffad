/** A moving picture of the sound: spectrum or wave, drawn while there is something to hear. */

const FLOOR_DB = -92;
const CEILING_DB = -22;
const LOW_HZ = 80;
const HIGH_HZ = 9000;
const PIXELS_PER_SECOND = 110;
const TAIL_MS = 900;
const SCALE = { "4 kHz": 4000, "1 kHz": 1000, "250 Hz": 250 };

export class Scope {
  #canvas;
  #context;
  #analyser = null;
  #bins = null;
  #wave = null;
  #view = "spectrum";
  #running = false;
  #lastAt = 0;
  #carry = 0;
  #quietSince = 0;
  #busy = () => false;
  #colours = null;

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {HTMLElement} scale gets the frequencies
   * @param {() => boolean} busy whether sound is on its way
   */
  constructor(canvas, scale, busy) {
    for (const [name, hz] of Object.entries(SCALE)) {
      const label = document.createElement("span");
      label.textContent = name;
      const line = scale.appendChild(document.createElement("li"));
      line.append(label);
      line.style.top = `${100 * (1 - (mel(hz) - mel(LOW_HZ)) / (mel(HIGH_HZ) - mel(LOW_HZ)))}%`;
    }
    this.#canvas = canvas;
    this.#context = canvas.getContext("2d", { willReadFrequently: false });
    this.#busy = busy;
    new ResizeObserver(() => this.#size()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.#colours = null;
      this.clear();
    });
  }

  /** Listen to a player. */
  attach(player) {
    const analyser = new AnalyserNode(player.context, {
      fftSize: 2048,
      smoothingTimeConstant: 0,
      minDecibels: FLOOR_DB,
      maxDecibels: CEILING_DB,
    });
    player.output.connect(analyser);
    this.#analyser = analyser;
    this.#bins = new Uint8Array(analyser.frequencyBinCount);
    this.#wave = new Float32Array(analyser.fftSize);
  }

  set view(view) {
    this.#view = view;
    this.#canvas.parentElement.dataset.view = view;
    this.clear();
  }

  /** Draw until the sound is over. */
  wake() {
    this.#quietSince = performance.now();
    if (this.#running) return;
    this.#running = true;
    this.#lastAt = performance.now();
    requestAnimationFrame((now) => this.#frame(now));
  }

  clear() {
    const { width, height } = this.#canvas;
    this.#context.clearRect(0, 0, width, height);
    this.#context.fillStyle = this.#palette.line;
    if (this.#view === "wave") this.#context.fillRect(0, Math.round(height / 2), width, 1);
  }

  get #palette() {
    if (!this.#colours) {
      const style = getComputedStyle(document.documentElement);
      this.#colours = { voice: style.getPropertyValue("--voice"), line: style.getPropertyValue("--line") };
    }
    return this.#colours;
  }

  #size() {
    const scale = Math.min(2, devicePixelRatio);
    const { clientWidth, clientHeight } = this.#canvas;
    const [width, height] = [Math.round(clientWidth * scale), Math.round(clientHeight * scale)];
    if (this.#canvas.width === width && this.#canvas.height === height) return;
    this.#canvas.width = width;
    this.#canvas.height = height;
    this.clear();
  }

  #frame(now) {
    if (this.#busy()) this.#quietSince = now;
    if (now - this.#quietSince > TAIL_MS) {
      this.#running = false;
      return;
    }
    requestAnimationFrame((next) => this.#frame(next));
    const scale = Math.min(2, devicePixelRatio);
    this.#carry += (Math.min(100, now - this.#lastAt) / 1000) * PIXELS_PER_SECOND * scale;
    this.#lastAt = now;
    const columns = Math.floor(this.#carry);
    if (!columns || !this.#analyser) return;
    this.#carry -= columns;
    this.#shift(columns);
    if (this.#view === "wave") this.#drawWave(columns);
    else this.#drawSpectrum(columns);
  }

  #shift(columns) {
    const { width, height } = this.#canvas;
    this.#context.globalCompositeOperation = "copy";
    this.#context.drawImage(this.#canvas, columns, 0, width - columns, height, 0, 0, width - columns, height);
    this.#context.globalCompositeOperation = "source-over";
  }

  /** Ink by energy; the ear's scale upwards. */
  #drawSpectrum(columns) {
    const { width, height } = this.#canvas;
    const context = this.#context;
    this.#analyser.getByteFrequencyData(this.#bins);
    const perHz = this.#bins.length / (this.#analyser.context.sampleRate / 2);
    const step = Math.max(2, Math.round(height / 72));
    const [low, high] = [mel(LOW_HZ), mel(HIGH_HZ)];
    context.fillStyle = this.#palette.voice;
    for (let y = 0; y < height; y += step) {
      const hz = (share) => hertz(low + (high - low) * share) * perHz;
      const first = Math.floor(hz(1 - (y + step) / height));
      const last = Math.max(first, Math.floor(hz(1 - y / height)));
      let peak = 0;
      for (let bin = first; bin <= last && bin < this.#bins.length; bin += 1) peak = Math.max(peak, this.#bins[bin]);
      if (peak < 8) continue;
      context.globalAlpha = (peak / 255) ** 1.6;
      context.fillRect(width - columns, y, columns, step - (step > 3 ? 1 : 0));
    }
    context.globalAlpha = 1;
  }

  #drawWave(columns) {
    const { width, height } = this.#canvas;
    const context = this.#context;
    this.#analyser.getFloatTimeDomainData(this.#wave);
    const middle = height / 2;
    const count = Math.min(this.#wave.length, Math.round(this.#analyser.context.sampleRate / 60));
    const samples = this.#wave.subarray(this.#wave.length - count);
    context.fillStyle = this.#palette.voice;
    for (let column = 0; column < columns; column += 1) {
      let peak = 0;
      const [from, to] = [column, column + 1].map((edge) => Math.floor((edge * count) / columns));
      for (let i = from; i < to; i += 1) peak = Math.max(peak, Math.abs(samples[i]));
      const reach = Math.max(0.5, Math.min(1, peak * 1.6) * (middle - 4));
      context.fillRect(width - columns + column, middle - reach, 1, 2 * reach);
    }
  }
}

function mel(hz) {
  return 2595 * Math.log10(1 + hz / 700);
}

function hertz(value) {
  return 700 * (10 ** (value / 2595) - 1);
}
