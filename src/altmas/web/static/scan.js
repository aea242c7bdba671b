// Which values of a scan are shown: level and window. Fetched with the first scan.

import { fetchImage } from "./api.js";
import { el } from "./dom.js";

/** Sliders for the values that are shown of a scan: the server maps them to grey. */
export function windowed(picture, part, { center, width, low, high }) {
  const made = {};
  const range = (name, least, most, value) => {
    const input = el("input", { type: "range", min: least, max: most, step: (most - least) / 200 || 1, "aria-label": name, oninput: () => rewindow(picture, part, made) });
    input.value = value;
    made[name] = input;
    return el("label", {}, name[0].toUpperCase() + name.slice(1), input);
  };
  const span = high - low || 1;
  const labels = [range("level", Math.min(low, center), Math.max(high, center), center), range("window", span / 200, Math.max(2 * span, width), width)];
  picture.box.querySelector(".picture-tools .quiet").before(...labels);
  const reset = picture.reset;
  picture.reset = () => {
    [made.level.value, made.window.value] = [center, width];
    rewindow(picture, part, made);
    reset();
  };
}

function rewindow(picture, part, { level, window }) {
  clearTimeout(picture.soon);
  picture.soon = setTimeout(async () => {
    const { url } = await fetchImage(`${part.path}?center=${level.value}&width=${window.value}`).catch(() => ({}));
    if (!url) return;
    URL.revokeObjectURL(picture.image.src);
    picture.image.src = url;
  }, 80);
}
