// Lists that are looked up: keys, classes. Fetched when the first one is opened.

import { tell } from "./dialog.js";
import { el, sheet } from "./dom.js";

await sheet("help", import.meta.url);

function pairs(rows) {
  const list = el("dl", { class: "pairs" });
  for (const [keys, text] of rows) {
    list.append(el("dt", {}, ...[keys].flat().map((key) => (typeof key === "string" ? el("kbd", {}, key) : key))), el("dd", { dir: "auto" }, text));
  }
  return list;
}

export function showDefinitions({ setup }) {
  const rows = setup.classes.map((one) => [
    [...(one.key ? [one.key.toUpperCase()] : []), el("span", { dir: "auto" }, one.name)],
    one.definition || "no definition was given",
  ]);
  tell("Classes", pairs(rows));
}

/** used(whether) is called when keys without Ctrl are switched on or off. */
export function showKeys({ setup, choices, single }, used) {
  const keyed = setup.order.map((code) => setup.classes[code]).filter((one) => one.key);
  const first = [...new Set([keyed[0], keyed.at(-1)])].map((one) => one && one.key.toUpperCase());
  const shift = choices.typed ? "Shift+" : "";
  const found = choices.search ? [["/", "find a class by name; Enter takes the first"]] : [];
  const classes = choices.typed
    ? [["letters", "find a class: parts of its words, initials; Enter takes the marked one, ↑ ↓ mark another"], [["1", "9"], "a class chosen last, or one of those found"], ["/", "digits are typed, too"]]
    : [[first, "choose a class: saves and goes on"], ...found];
  const box = el("input", { type: "checkbox", id: "single", onchange: () => used(box.checked) });
  box.checked = single;
  tell("Keys", [pairs([
    ...classes,
    [`${shift}U`, "unsure: an expert will see it"],
    [`${shift}S`, "skip, with a reason"],
    [[`${shift}Z`, "Ctrl+Z"], "undo the last label, skip or unsure, also after a restart"],
    [["←", "→"], "back to what you said before, to look or to change it; forward again"],
    [["↑", "↓", "PgUp", "PgDn"], "scroll a long item"],
    [`${shift}N`, "note on this item"],
    ...(setup.reveal ? [[`${shift}R`, "reveal the prediction (is written down)"]] : []),
    ...(setup.instructions ? [[`${shift}I`, "instructions"]] : []),
    [`${shift}C`, "class definitions"],
    [["+", "−", "."], "image: zoom in, zoom out, reset"],
    [["Shift", "arrows"], "image: move"],
    ["?", "this list"],
  ]), el("label", { class: "check" }, box, "Keys without Ctrl label and command (off: only buttons, Ctrl+Z, arrows and Page keys)")]);
}
