// Small charts, drawn as SVG.

const NS = "http://www.w3.org/2000/svg";

export function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}

/** Round numbers that divide the range from low to high into about `count` steps. */
export function ticks(low, high, count) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-6; at += step) found.push(Number(at.toPrecision(12)));
  return found;
}

/**
 * A line over the number of labels, with a band around it and a dashed level to reach.
 * points: [{ x, y, low?, high? }] in order of x; undefined stretches are left out.
 */
export function lineChart({ points, level = null, levelName = "", most, name, low = null, high = null }) {
  const [width, height, left, right, top, bottom] = [520, 260, 46, 12, 10, 30];
  const known = points.filter((point) => point.y !== null);
  const heights = known.flatMap((point) => [point.y, point.low ?? point.y, point.high ?? point.y]).concat(level === null ? [] : [level]);
  let [least, greatest] = heights.length ? [low ?? Math.min(...heights), high ?? Math.max(...heights)] : [0, 1];
  if (greatest - least < 1e-9) [least, greatest] = [least - 0.05, greatest + 0.05];
  const pad = (greatest - least) * 0.06;
  [least, greatest] = [low ?? least - pad, greatest + pad];
  const end = Math.max(1, most, ...known.map((point) => point.x));
  const x = (value) => left + ((width - left - right) * value) / end;
  const y = (value) => top + ((height - top - bottom) * (greatest - value)) / (greatest - least);
  const chart = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": describe(name, known, level, levelName) });
  for (const at of ticks(least, greatest, 4)) {
    chart.append(svg("line", { class: "grid", x1: left, x2: width - right, y1: y(at), y2: y(at) }));
    chart.append(svg("text", { x: left - 8, y: y(at) + 4, "text-anchor": "end" }, String(at)));
  }
  for (const at of ticks(0, end, 5)) chart.append(svg("text", { x: x(at), y: height - 8, "text-anchor": "middle" }, at.toLocaleString()));
  const banded = known.filter((point) => point.low !== null && point.low !== undefined);
  if (banded.length > 1) {
    const over = banded.map((point) => `${x(point.x)},${y(point.high)}`);
    const under = banded.map((point) => `${x(point.x)},${y(point.low)}`).reverse();
    chart.append(svg("polygon", { class: "band", points: [...over, ...under].join(" ") }));
  }
  if (level !== null) {
    chart.append(svg("line", { class: "target", x1: left, x2: width - right, y1: y(level), y2: y(level) }));
    chart.append(svg("text", { class: "target-text", x: width - right, y: y(level) - 6, "text-anchor": "end" }, levelName));
  }
  if (known.length) {
    chart.append(svg("polyline", { class: "line", points: known.map((point) => `${x(point.x)},${y(point.y)}`).join(" ") }));
    const last = known.at(-1);
    chart.append(svg("circle", { class: "mark-point", cx: x(last.x), cy: y(last.y), r: 4 }));
  }
  return chart;
}

function describe(name, known, level, levelName) {
  if (!known.length) return `${name}: nothing yet`;
  const last = known.at(-1);
  return `${name}: ${last.y.toFixed(3)} at ${last.x} labels${level === null ? "" : `; ${levelName}`}`;
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
