// The classes: buttons with keys, or, where there are too many for keys, a search box that takes whatever is typed.

import { byId, el, say } from "./dom.js";

const FEW = 6; // more than these stand side by side
const SEARCHED = 12; // and more than these can be searched
const MOST_KEYS = 28; // above, letters search and 1-9 are the classes chosen last
const SLOTS = 9;
const MOST_FOUND = 40;
const NONE = 6; // a name that does not fit

/** A name whose parts may stand in lines of their own. */
export const breakable = (name) => name.split(/(?<=[_/.-])/).flatMap((part, at) => (at ? [el("wbr"), part] : [part]));

const plain = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase().replace(/[\s_/.:-]+/g, " ").trim();

/** Whether two words differ by at most `most` typing errors: a letter more, less, another one, or two swapped. */
function alike(one, other, most) {
  if (Math.abs(one.length - other.length) > most) return false;
  let [older, before] = [[], Array.from({ length: other.length + 1 }, (_, at) => at)];
  for (let i = 1; i <= one.length; i++) {
    const row = [i];
    for (let j = 1; j <= other.length; j++) {
      row[j] = Math.min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (one[i - 1] === other[j - 1] ? 0 : 1));
      if (i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]) row[j] = Math.min(row[j], older[j - 2] + 1);
    }
    [older, before] = [before, row];
  }
  return before[other.length] <= most;
}

/** A word of the name that begins like the given one, but for a typing error (two in long words). */
function mistyped(word, name) {
  const most = word.length < 4 ? 0 : word.length < 8 ? 1 : 2;
  return most > 0 && [-1, 0, 1].some((more) => alike(word, name.slice(0, word.length + more), most));
}

/** Whether letters are the beginnings of words one after the other: "tnr" or "trnotrec" for transfer not received. */
function beginnings(letters, words) {
  if (!letters || !words.length) return !letters;
  for (let length = Math.min(letters.length, words[0].length); length > 0; length--) {
    if (words[0].startsWith(letters.slice(0, length)) && beginnings(letters.slice(length), words.slice(1))) return true;
  }
  return false;
}

/** How well words fit what was typed: 0 is best, NONE not at all. Words in any order, "_" is a blank. */
function fit({ name, words }, wanted, errors) {
  if (name === wanted) return 0;
  if (name.startsWith(wanted)) return 1;
  const parts = wanted.split(" ");
  if (parts.every((part) => words.some((word) => word.startsWith(part)))) return 2;
  if (words.length > 1 && beginnings(parts.join(""), words)) return 3;
  if (parts.every((part) => name.includes(part))) return 4;
  return errors && parts.every((part) => words.some((word) => word.startsWith(part) || mistyped(part, word))) ? 5 : NONE;
}

export class Choices {
  /** classes: {name, key, definition, group?}; told: order of the codes, grades, pair (two codes), recent (codes) */
  constructor(classes, chosen, { order = classes.map((_, code) => code), grades = false, pair = null, recent = [], remember = () => {} } = {}) {
    Object.assign(this, { classes, order, pair, remember, sides: pair, grades: grades && classes.length <= 7, found: null, at: 0, literal: false, on: null, marked: null });
    this.box = byId("choices");
    this.search = byId("search");
    this.chosen = (code) => {
      this.clear();
      chosen(code);
    };
    this.typed = Boolean(this.search) && classes.length > MOST_KEYS;
    this.terms = classes.map((one) => ({ name: plain(one.name), words: plain(one.name).split(" ") }));
    this.digits = classes.some((one) => /\d/.test(one.name));
    this.slots = recent.filter((code) => code < classes.length).slice(0, SLOTS);
    this.used = [...this.slots];
    this.buttons = classes.map((one, code) => this.button(one, code));
    this.byKey = new Map(classes.map((one, code) => [one.key, code]).filter(([key]) => key));
    this.box.classList.toggle("many", classes.length > FEW);
    this.box.classList.toggle("grades", this.grades);
    document.body.classList.toggle("typed", this.typed);
    this.draw();
    if (!this.search) return;
    byId("search-box").hidden = classes.length <= SEARCHED;
    this.search.addEventListener("input", () => this.filter());
    this.search.addEventListener("keydown", (event) => this.searching(event));
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

  // -------------------------------------------------------------- what is shown

  draw() {
    if (!this.typed) return this.box.replaceChildren(...this.order.map((code) => this.buttons[code]));
    this.all ||= el("div", { class: "groups" }, ...this.groups());
    this.last ||= el("div", { class: "numbered" });
    this.box.replaceChildren(this.last, this.all);
    this.drawLast();
  }

  groups() {
    const groups = new Map();
    for (const code of this.order) {
      const group = this.classes[code].group || "";
      groups.set(group, [...(groups.get(group) || []), this.buttons[code]]);
    }
    return [...groups].sort(([a], [b]) => !a - !b).map(([name, buttons]) =>
      el("section", groups.size > 1 ? { "aria-label": name || "other" } : {}, groups.size > 1 ? el("h2", {}, name || "other") : null, ...buttons),
    );
  }

  /** The classes chosen last: each keeps its number until another one needs it. */
  drawLast() {
    const made = this.slots.map((code, at) => this.numbered(code, at + 1));
    this.last.replaceChildren(...(made.length ? [el("h2", {}, "Chosen last")] : []), ...made);
  }

  numbered(code, number) {
    const key = number <= SLOTS ? el("kbd", { "aria-hidden": "true" }, String(number)) : null;
    const { name, definition } = this.classes[code];
    return el("button", { type: "button", title: definition || null, onclick: () => this.chosen(code) }, key, el("span", { dir: "auto" }, ...breakable(name)));
  }

  took(code) {
    if (!this.typed) return;
    this.used = [code, ...this.used.filter((one) => one !== code)].slice(0, SLOTS);
    if (this.slots.includes(code)) return;
    const gone = this.slots.findIndex((one) => !this.used.includes(one));
    if (this.slots.length < SLOTS) this.slots.push(code);
    else this.slots[gone] = code;
    this.remember(this.slots);
    this.drawLast();
  }

  // -------------------------------------------------------------- search

  filter() {
    const wanted = plain(this.search.value);
    this.at = 0;
    if (!wanted) {
      this.found = null;
      return this.draw();
    }
    this.found = this.fitting(wanted, false);
    if (!this.found.length) this.found = this.fitting(wanted, true);
    const counted = this.typed && !this.digits && !this.literal ? 1 : MOST_FOUND;
    this.results = this.found.slice(0, MOST_FOUND).map((code, at) => (this.typed ? this.numbered(code, counted + at) : this.buttons[code]));
    const shown = this.results.length ? this.results : [el("p", {}, "No class of that name")];
    this.box.replaceChildren(...(this.typed ? [el("div", { class: "numbered" }, ...shown)] : shown));
    this.point();
  }

  fitting(wanted, errors) {
    const ranks = this.terms.map((term) => fit(term, wanted, errors));
    return this.order.filter((code) => ranks[code] < NONE).sort((a, b) => ranks[a] - ranks[b]);
  }

  /** Mark the one that Enter takes. */
  point() {
    this.results.forEach((button, at) => button.classList.toggle("first", at === this.at));
    if (!this.results.length) return say("No class of that name");
    this.results[this.at].scrollIntoView({ block: "nearest" });
    say(`${this.classes[this.found[this.at]].name}, ${this.at + 1} of ${this.found.length}`);
  }

  searching(event) {
    if (event.isComposing) return;
    const moves = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key === "Enter" && this.found && this.found.length) this.chosen(this.found[this.at]);
    else if (event.key === "Escape" && this.search.value) this.clear();
    else if (moves[event.key] && this.results && this.found) {
      this.at = Math.max(0, Math.min(this.results.length - 1, this.at + moves[event.key]));
      this.point();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** The class that a digit means where classes are typed: one chosen last, or one of those found. */
  numberedClass(digit) {
    if (!this.typed || this.literal || digit < 1) return undefined;
    if (!this.found) return this.slots[digit - 1];
    return this.digits ? undefined : this.found[digit - 1];
  }

  clear() {
    this.literal = false;
    if (!this.search || !this.search.value) return;
    this.search.value = "";
    if (!this.typed) this.search.blur();
    this.filter();
  }

  /** Keys go into the search box from now on, except where there is none or a touch would open a keyboard. */
  focus() {
    if (this.typed && !matchMedia("(pointer: coarse)").matches) this.search.focus({ preventScroll: true });
  }

  // -------------------------------------------------------------- state

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
}
