// The classes: buttons with keys. More than a dozen can be searched: search.js.

import { part } from "./api.js";
import { byId, el, sheet } from "./dom.js";

const FEW = 6; // more than these stand side by side
const SEARCHED = 12; // and more than these can be searched

/** The classes on the page. classes: {name, key, definition, group?}; told: order of the codes, grades, pair (two codes), recent (codes) */
export async function choicesOf(classes, chosen, told = {}) {
  const Kind = classes.length > SEARCHED ? (await part("search")).SearchedChoices : Choices;
  return new Kind(classes, chosen, told);
}

/** A name whose parts may stand in lines of their own. */
export const breakable = (name) => name.split(/(?<=[_/.-])/).flatMap((part, at) => (at ? [el("wbr"), part] : [part]));

export class Choices {
  typed = false; // whether letters search instead of being keys

  constructor(classes, chosen, { order = classes.map((_, code) => code), grades = false, pair = null } = {}) {
    Object.assign(this, { classes, chosen, order, pair, sides: pair, grades: grades && classes.length <= 7, on: null, marked: null });
    this.box = byId("choices");
    this.buttons = classes.map((one, code) => this.button(one, code));
    this.byKey = new Map(classes.map((one, code) => [one.key, code]).filter(([key]) => key));
    this.box.classList.toggle("many", classes.length > FEW);
    this.box.classList.toggle("grades", this.grades);
    if (this.grades) sheet("grades", import.meta.url);
    this.draw();
  }

  button(one, code) {
    const side = this.pair ? this.pair.indexOf(code) : -1;
    const name = side < 0 ? breakable(one.name) : [["Left", "Right"][side]];
    const text = el("span", { dir: "auto" }, ...name);
    const more = this.grades && one.definition ? el("small", {}, one.definition) : null;
    const key = one.key && one.key !== one.name ? el("kbd", { "aria-hidden": "true" }, one.key.toUpperCase()) : null;
    const described = { type: "button", "aria-pressed": "false", "aria-keyshortcuts": one.key || null, title: side < 0 ? one.definition || null : null };
    return el("button", { ...described, onclick: () => this.chosen(side < 0 ? code : this.sides[side]) }, key, text, more);
  }

  draw() {
    this.box.replaceChildren(...this.order.map((code) => this.buttons[code]));
  }

  /** The classes that stand on the left and on the right of this item. */
  turn(sides) {
    this.sides = sides || this.pair;
  }

  /** What the annotator sees for a class. */
  named(code) {
    const side = this.pair ? this.sides.indexOf(code) : -1;
    return side < 0 ? this.classes[code].name : ["Left", "Right"][side];
  }

  /** The class that a key means, for the item on the screen. */
  of(key) {
    const code = this.byKey.get(key);
    const side = this.pair && code !== undefined ? this.pair.indexOf(code) : -1;
    return side < 0 ? code : this.sides[side];
  }

  /** Mark the class that was chosen before, or none. */
  mark(code) {
    for (const [one, on] of [[this.marked, false], [code, true]]) {
      if (one === null || one === undefined) continue;
      const side = this.pair ? this.sides.indexOf(one) : -1;
      const button = this.buttons[side < 0 ? one : this.pair[side]];
      button.classList.toggle("chosen", on);
      button.setAttribute("aria-pressed", String(on));
    }
    this.marked = code;
  }

  enable(on) {
    if (this.on === on) return;
    this.on = on;
    this.buttons.forEach((button) => (button.disabled = !on));
  }

  // What classes that are typed do besides (search.js).
  took() {}
  focus() {}
}
