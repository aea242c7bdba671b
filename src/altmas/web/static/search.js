// Classes that can be searched; more of them than keys are typed: letters search, and 1-9 are those chosen last.

import { Choices, breakable } from "./choices.js";
import { byId, el, keyOf, say, sheet, typing } from "./dom.js";

const MOST_KEYS = 28; // above, letters search and 1-9 are the classes chosen last
const SLOTS = 9;
const MOST_FOUND = 40;
const NONE = 6; // a name that does not fit

await sheet("search", import.meta.url);

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

export class SearchedChoices extends Choices {
  constructor(classes, chosen, told = {}) {
    super(classes, (code) => {
      this.clear();
      chosen(code);
    }, told);
    const { recent = [], remember = () => {} } = told;
    Object.assign(this, { remember, found: null, at: 0, literal: false, search: byId("search") });
    this.typed = classes.length > MOST_KEYS;
    this.terms = classes.map((one) => ({ name: plain(one.name), words: plain(one.name).split(" ") }));
    this.digits = classes.some((one) => /\d/.test(one.name));
    this.slots = recent.filter((code) => code < classes.length).slice(0, SLOTS);
    this.used = [...this.slots];
    document.body.classList.toggle("typed", this.typed);
    this.draw();
    byId("search-box").hidden = false;
    this.search.addEventListener("input", () => this.filter());
    this.search.addEventListener("keydown", (event) => this.searching(event));
  }

  draw() {
    if (!this.typed) return super.draw();
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

  /** Letters search, digits take a class; while nothing is typed, Shift and a letter command and other keys scroll. */
  pressed(event, single, commands, scrolled) {
    const key = keyOf(event);
    const inside = event.target === this.search;
    if (typing(event.target) && !inside) return;
    const empty = !this.search.value;
    const code = /^[1-9]$/.test(key) && (single || inside) ? this.numberedClass(Number(key)) : undefined;
    if (code !== undefined) this.chosen(code);
    else if (empty && scrolled(event, key)) this.focus();
    else if (empty && ["ArrowLeft", "ArrowRight", "Escape"].includes(key)) commands[key]();
    else if (empty && single && event.shiftKey && /^[a-z]$/.test(key) && commands[key]) commands[key]();
    else if (empty && single && /^[?+=.-]$/.test(key)) commands[key]();
    else if (empty && key === "/") {
      this.search.focus();
      this.literal = true;
    } else {
      if (!inside && single && key.length === 1 && key !== " ") this.search.focus();
      return;
    }
    event.preventDefault();
  }
}
