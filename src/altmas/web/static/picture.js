// An image that can be zoomed, moved and brightened; of a scan also the values that are shown (level and window).

import { part as script } from "./api.js";
import { el, sheet } from "./dom.js";

const LARGEST = 12;
const tone = { brightness: 100, contrast: 100 }; // kept from item to item: it belongs to the screen and the room

await sheet("picture", import.meta.url);

export class Picture {
  constructor(part) {
    this.image = el("img", { alt: part.name ? `Image: ${part.name}` : "The image to label", draggable: "false" });
    this.stage = el("div", { class: "stage" }, this.image);
    this.box = el("div", { class: "picture" }, this.stage, this.tools(part.name));
    this.view = { scale: 1, x: 0, y: 0 };
    this.pointers = new Map();
    this.listen();
    this.applyTone();
    this.ready = this.load(part);
  }

  async load(part) {
    try {
      const { url, window } = await part.source;
      this.image.src = url;
      await this.image.decode();
      if (window) (await script("scan")).windowed(this, part, window);
      this.fit();
      this.sizes = new ResizeObserver(() => this.fit());
      this.sizes.observe(this.stage);
    } catch (error) {
      part.source = null; // a later look tries again
      const why = error.message && error.name !== "EncodingError" ? error.message : "the file is damaged";
      this.image.remove();
      this.stage.append(el("p", { class: "problem" }, `The image cannot be shown: ${why}.`.replace(/\.\.$/, ".")));
      return why;
    }
  }

  tools(name) {
    const slider = (what, most) => {
      const input = el("input", { type: "range", min: 20, max: most, step: 5, "aria-label": what });
      input.value = tone[what];
      input.addEventListener("input", () => {
        tone[what] = Number(input.value);
        this.applyTone();
      });
      return el("label", {}, what[0].toUpperCase() + what.slice(1), input);
    };
    const brightness = slider("brightness", 300);
    const contrast = slider("contrast", 400);
    const reset = () => {
      tone.brightness = tone.contrast = 100;
      for (const label of [brightness, contrast]) label.querySelector("input").value = 100;
      this.applyTone();
      this.fit();
    };
    this.reset = reset;
    return el(
      "div",
      { class: "picture-tools" },
      el("button", { type: "button", "aria-label": "Zoom out", onclick: () => this.zoom(1 / 1.4) }, "−"),
      el("button", { type: "button", "aria-label": "Zoom in", onclick: () => this.zoom(1.4) }, "+"),
      brightness,
      contrast,
      el("button", { type: "button", class: "quiet", onclick: () => this.reset() }, "Reset"),
      name ? el("span", { class: "caption" }, name) : null,
    );
  }

  applyTone() {
    this.image.style.filter =
      tone.brightness === 100 && tone.contrast === 100 ? "none" : `brightness(${tone.brightness}%) contrast(${tone.contrast}%)`;
  }

  fit() {
    const { clientWidth: width, clientHeight: height } = this.stage;
    const whole = Math.min(width / this.image.naturalWidth, height / this.image.naturalHeight) * 0.96;
    const scale = Math.min(whole, LARGEST); // tiny images are harder to recognise when they are huge
    this.fitted = scale;
    this.view = {
      scale,
      x: (width - this.image.naturalWidth * scale) / 2,
      y: (height - this.image.naturalHeight * scale) / 2,
    };
    this.place();
  }

  place() {
    const { scale, x, y } = this.view;
    this.image.style.transform = `translate(${x}px, ${y}px) scale(${scale})`;
    this.image.classList.toggle("coarse", scale > 3);
  }

  zoom(factor, x = this.stage.clientWidth / 2, y = this.stage.clientHeight / 2) {
    if (!this.fitted) return;
    const scale = Math.max(this.fitted / 4, Math.min(this.fitted * 40, this.view.scale * factor));
    const ratio = scale / this.view.scale;
    this.view = { scale, x: x - (x - this.view.x) * ratio, y: y - (y - this.view.y) * ratio };
    this.place();
  }

  move(dx, dy) {
    this.view.x += dx;
    this.view.y += dy;
    this.place();
  }

  listen() {
    const stage = this.stage;
    stage.addEventListener("wheel", (event) => {
      event.preventDefault();
      const box = stage.getBoundingClientRect();
      this.zoom(Math.exp(-event.deltaY * 0.0015), event.clientX - box.left, event.clientY - box.top);
    }, { passive: false });
    stage.addEventListener("dblclick", () => this.fit());
    stage.addEventListener("pointerdown", (event) => {
      stage.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, event);
      stage.classList.add("held");
    });
    stage.addEventListener("pointermove", (event) => this.drag(event));
    for (const end of ["pointerup", "pointercancel"]) {
      stage.addEventListener(end, (event) => {
        this.pointers.delete(event.pointerId);
        if (!this.pointers.size) stage.classList.remove("held");
      });
    }
  }

  drag(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const other = [...this.pointers.values()].find((pointer) => pointer.pointerId !== event.pointerId);
    if (other) {
      const box = this.stage.getBoundingClientRect();
      const spread = (one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY) || 1;
      this.zoom(spread(event) / spread(before), other.clientX - box.left, other.clientY - box.top);
    } else {
      this.move(event.clientX - before.clientX, event.clientY - before.clientY);
    }
    this.pointers.set(event.pointerId, event);
  }
}
