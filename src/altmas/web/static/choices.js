// The buttons of the classes, with their keys, and a search box where there are many.

import { byId, el } from "./dom.js";

const FEW = 6; // more than these stand side by side
const SEARCHED = 12; // and more than these can be searched

/** A name whose parts may stand in lines of their own. */
const breakable = (name) => name.split(/(?<=[_/.-])/).flatMap((part, at) => (at ? [el("wbr"), part] : [part]));

const plain = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase().replace(/[\s_/.-]+/g, " ").trim();

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

/** How well a name fits what was typed: 0 is best, 6 not at all. Words in any order, "_" is a blank, initials count. */
export function fit(given, typed) {
  const [name, wanted] = [plain(given), plain(typed)];
  if (name === wanted) return 0;
  if (name.startsWith(wanted)) return 1;
  const [words, parts] = [name.split(" "), wanted.split(" ")];
  if (parts.every((part) => words.some((word) => word.startsWith(part)))) return 2;
  if (words.length > 1 && words.map((word) => word[0]).join("").startsWith(wanted)) return 3;
  if (parts.every((part) => name.includes(part))) return 4;
  return parts.every((part) => words.some((word) => word.startsWith(part) || mistyped(part, word))) ? 5 : 6;
}

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
    return el("button", { ...described, onclick: pressed }, key, el("span", { dir: "auto" }, ...breakable(one.name)));
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
    const wanted = this.search.value.trim();
    const ranks = this.classes.map((one) => fit(one.name, wanted));
    const codes = this.classes.map((_, code) => code);
    this.found = wanted ? codes.filter((code) => ranks[code] < 6).sort((a, b) => ranks[a] - ranks[b] || a - b) : codes;
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
