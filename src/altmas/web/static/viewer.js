// Shows one item: texts, named values, images (picture.js).

import { fetchImage, part as script } from "./api.js";
import { el, sheet } from "./dom.js";

let Picture = null;
let paired = false;

async function fetchPicture() {
  Picture ||= (await script("picture")).Picture;
}

const pictured = (item) => item.parts.some((part) => part.kind === "image");

/** Begin to load the images of an item, so that they are there when it is shown. */
export function preload(item) {
  if (pictured(item)) fetchPicture().catch(() => {}); // told when the item is shown
  for (const part of item.parts) {
    if (part.kind === "image" && !part.source) {
      part.path = `/api/image/${item.handle}/${part.number}`;
      part.source = fetchImage(part.path);
      part.source.catch(() => {}); // told when the item is shown
    }
  }
}

export function forget(item) {
  for (const part of item.parts) {
    if (part.source) part.source.then(({ url }) => URL.revokeObjectURL(url), () => {});
    part.source = null;
  }
}

/** Put the item into the box; resolves when all its images are there, or with why some are missing. */
export async function show(box, item) {
  const turn = (box.turn = (box.turn || 0) + 1);
  preload(item);
  if (pictured(item) && !Picture) {
    try {
      await fetchPicture();
    } catch (error) {
      if (turn !== box.turn) return [];
      box.replaceChildren(el("p", { class: "text missing" }, `The image cannot be shown: ${error.message}`));
      return [error.message];
    }
    if (turn !== box.turn) return []; // another item came meanwhile
  }
  const pictures = [];
  const made = (part) => {
    if (part.kind === "text") return bareText(part.text);
    pictures.push(new Picture(part));
    return pictures.at(-1).box;
  };
  const of = (kind, side) => item.parts.filter((part) => part.kind === kind && part.side === side);
  const column = (side, name) => el("section", { class: "side-by-side", "aria-label": name }, el("h2", {}, name), ...of("image", side).map(made), ...of("text", side).map(made));
  const values = of("value");
  const shown = [...of("image").map(made), ...of("text").map(made), ...(values.length ? [fields(values)] : [])];
  if (item.sides) {
    if (!paired) sheet("pairs", import.meta.url);
    paired = true;
    shown.push(el("div", { class: "pair" }, column("left", "Left"), column("right", "Right")));
  }
  box.replaceChildren(...shown);
  box.scrollTop = 0;
  box.picture = pictures[0] || null;
  return (await Promise.all(pictures.map((picture) => picture.ready))).filter(Boolean);
}

function bareText(text) {
  return el("div", { class: text === null ? "text missing" : "text", dir: "auto" }, text === null ? "(empty)" : text);
}

function fields(values) {
  const list = el("dl", { class: "fields" });
  for (const part of values) {
    const value = part.text === null ? el("dd", { class: "missing" }, "–") : el("dd", { dir: "auto" }, part.text);
    list.append(el("dt", {}, part.name), value);
  }
  return list;
}
