// One estimate as a point with its interval on a line.

const NS = "http://www.w3.org/2000/svg";

function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}

/** One estimate as a point with its interval on a line from `from` to `to`. */
export function forest(one, from, to) {
  const x = (value) => 4 + (292 * (value - from)) / (to - from || 1);
  const chart = svg("svg", { viewBox: "0 0 300 24", "aria-hidden": "true" });
  chart.append(svg("line", { class: "axis", x1: 4, x2: 296, y1: 12, y2: 12 }));
  if (one.threshold !== null) chart.append(svg("line", { class: "target", x1: x(one.threshold), x2: x(one.threshold), y1: 1, y2: 23 }));
  if (one.low !== null) chart.append(svg("line", { class: "whisker", x1: x(one.low), x2: x(one.high), y1: 12, y2: 12 }));
  if (one.value !== null) chart.append(svg("circle", { class: "mark-point", cx: x(one.value), cy: 12, r: 6 }));
  return chart;
}
