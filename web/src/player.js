// Steps through passes and layers: slider, buttons, and play.

import { el } from "./dom.js";

const PACE = 900;

export class Player {
  /** @param {(step: number) => void} onstep */
  constructor(onstep) {
    this.onstep = onstep;
    this.timer = 0;
    this.names = /** @type {string[]} */ ([]);
    this.slider = el("input", {
      type: "range",
      min: "0",
      max: "0",
      step: "1",
      "aria-label": "Pass and round",
      oninput: () => { this.stop(); this.go(Number(this.slider.value)); },
    });
    this.playing = el("button", { type: "button", class: "play", "aria-pressed": "false", onclick: () => this.toggle() }, "Play");
    this.text = el("output", { class: "step" });
    this.element = el(
      "div",
      { class: "player", role: "group", "aria-label": "Rounds" },
      el("button", { type: "button", "aria-label": "Previous round", onclick: () => { this.stop(); this.go(this.step - 1); } }, "\u2190"),
      this.playing,
      el("button", { type: "button", "aria-label": "Next round", onclick: () => { this.stop(); this.go(this.step + 1); } }, "\u2192"),
      this.slider,
      this.text,
    );
  }

  get step() {
    return Number(this.slider.value);
  }

  /** Take other steps, and stand on one. @param {string[]} names @param {number} step */
  set(names, step) {
    this.names = names;
    this.slider.max = `${Math.max(names.length - 1, 0)}`;
    this.go(step);
  }

  /** @param {number} step */
  go(step) {
    const wanted = Math.min(Math.max(step, 0), this.names.length - 1);
    this.slider.value = `${wanted}`;
    this.slider.setAttribute("aria-valuetext", this.names[wanted] ?? "");
    this.text.textContent = this.names[wanted] ?? "";
    if (wanted >= 0) this.onstep(wanted);
  }

  toggle() {
    if (this.timer) {
      this.stop();
      return;
    }
    if (this.step >= this.names.length - 1) this.go(0);
    this.playing.textContent = "Pause";
    this.playing.setAttribute("aria-pressed", "true");
    this.timer = setInterval(() => {
      this.go(this.step + 1);
      if (this.step >= this.names.length - 1) this.stop();
    }, PACE);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = 0;
    this.playing.textContent = "Play";
    this.playing.setAttribute("aria-pressed", "false");
  }
}
