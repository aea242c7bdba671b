// The buttons of the classes, with their keys, and a search box where there are many.

import { byId, el } from "./dom.js";

const FEW = 6; // more than these stand side by side
const SEARCHED = 12; // and more than these can be searched

export class Choices {
  constructor(classes, chosen) {
    this.classes = classes;
    this.box = byId("choices");
    this.search = byId("search");
    this.byKey = new Map(classes.map((one, code) => [one.key, code]).filter(([key]) => key));
    this.buttons = classes.map((one, code) => this.button(one, () => chosen(code)));
    this.box.classList.toggle("many", classes.length > FEW);
    this.box.replaceChildren(...this.buttons);
    if (this.search) this.listen(chosen);
  }

  button(one, pressed) {
    const key = one.key ? el("kbd", { "aria-hidden": "true" }, one.key.toUpperCase()) : null;
    const described = { type: "button", "aria-pressed": "false", "aria-keyshortcuts": one.key || null, title: one.definition || null };
    return el("button", { ...described, onclick: pressed }, key, el("span", { dir: "auto" }, one.name));
  }

  listen(chosen) {
    byId("search-box").hidden = this.classes.length <= SEARCHED;
    this.search.addEventListener("input", () => this.filter());
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && this.found.length && this.search.value.trim()) {
        event.preventDefault();
        const code = this.found[0];
        this.clear();
        chosen(code);
      } else if (event.key === "Escape") {
        this.clear();
      }
    });
    this.filter();
  }

  filter() {
    const wanted = this.search.value.trim().toLowerCase();
    const rank = (code) => {
      const name = this.classes[code].name.toLowerCase();
      return name === wanted ? 0 : name.startsWith(wanted) ? 1 : name.includes(wanted) ? 2 : 3;
    };
    const codes = this.classes.map((_, code) => code);
    this.found = wanted ? codes.filter((code) => rank(code) < 3).sort((a, b) => rank(a) - rank(b) || a - b) : codes;
    const shown = this.found.map((code) => this.buttons[code]);
    this.box.replaceChildren(...(shown.length ? shown : [el("p", {}, "No class of that name")]));
    this.buttons.forEach((button) => button.classList.remove("first"));
    if (wanted && shown.length) shown[0].classList.add("first");
  }

  clear() {
    this.search.value = "";
    this.search.blur();
    this.filter();
  }

  /** Mark the class that was chosen before, or none. */
  mark(code) {
    this.buttons.forEach((button, at) => {
      button.classList.toggle("chosen", at === code);
      button.setAttribute("aria-pressed", String(at === code));
    });
  }

  enable(on) {
    this.buttons.forEach((button) => (button.disabled = !on));
  }
}
