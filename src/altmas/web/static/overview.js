// The owner's view: what is known so far, how sure, how much longer, and who did what.

import { call } from "./api.js";
import { forest, lineChart } from "./charts.js";
import { banner, byId, clock, duration, el } from "./dom.js";

const EVERY_MS = 2000;
let chosen = null;
let latest = null;

const figure = (value, digits = 3) => (value === null || value === undefined ? "–" : value.toFixed(digits));
const halfWidth = (one) => (one.low === null ? null : (one.high - one.low) / 2);

async function refresh() {
  try {
    latest = await call("/api/owner/overview");
    banner(latest.problem);
    fresh("saved", `as of ${clock(new Date().toISOString())}`);
    draw();
  } catch (error) {
    fresh("away", "no connection");
    banner(error.message);
  }
}

function fresh(state, text) {
  byId("fresh").dataset.state = state;
  byId("fresh-text").textContent = text;
}

function draw() {
  document.title = `${latest.title} · overview`;
  byId("title").textContent = latest.title;
  byId("to-settle").textContent = latest.to_settle;
  drawTiles();
  drawEstimates();
  drawPath();
  drawPeople();
}

function tile(label, value, under) {
  return el("div", { class: "tile" }, el("p", { class: "label" }, label), el("p", { class: "figure" }, value), el("p", { class: "under" }, under));
}

function drawTiles() {
  const { status, budget, decision, supply } = latest;
  const pace = status.seconds_per_label;
  const forecast = decision && decision.forecast;
  const fit = supply.refitting ? "refitting" : "up to date";
  const last = supply.last_fit_labels === null ? "no fit yet" : `last fit: ${supply.last_fit_labels} labels`;
  const more = forecast ? `about ${forecast.labels.toLocaleString()} more` : decision && decision.stop ? "none" : "–";
  const why = decision ? decision.reason : "being computed";
  const tiles = [
    tile("Labels", `${status.labels.toLocaleString()} of ${budget.toLocaleString()}`, `${status.skipped} skipped, ${status.unsure} unsure`),
    tile("Pace", pace === null ? "–" : `${pace.toFixed(1)} s`, "per label, median"),
    tile("Labels still needed", more, forecast && forecast.minutes !== null ? `about ${duration(60 * forecast.minutes)}; ${why}` : why),
    tile("Model", supply.problem ? "trouble" : fit, supply.problem || `${supply.ready} items ready, ${last}`),
  ];
  byId("tiles").replaceChildren(...tiles);
}

function drawEstimates() {
  const { estimates, confidence, estimated_at: at, status } = latest;
  const level = `${Math.round(100 * confidence)} % interval`;
  byId("estimates-note").textContent = at === null ? "Being computed." : `From ${at.toLocaleString()} labels, method ${status.method}.`;
  if (!estimates.length) return;
  const all = estimates.flatMap((one) => [one.value, one.low, one.high, one.threshold]).filter((one) => one !== null);
  const [from, to] = [Math.min(0, ...all), Math.max(1, ...all)];
  const head = ["metric", "estimate", level, "", "± now", "± wanted", "labels worth"];
  const rows = estimates.map((one) => estimateRow(one, from, to));
  byId("estimates").replaceChildren(table(head, rows, new Set([1, 2, 4, 5, 6])));
}

function estimateRow(one, from, to) {
  const half = halfWidth(one);
  const met = one.target !== null && half !== null && half <= one.target;
  const name = el("span", {}, one.metric, one.note ? el("span", { class: "note" }, one.note) : null);
  const wanted = one.target === null ? "–" : el("span", { class: met ? "met" : "unmet" }, `${figure(one.target)}${met ? " ✓" : ""}`);
  const interval = one.low === null ? "–" : `${figure(one.low)} – ${figure(one.high)}`;
  const worth = one.effective_labels === null ? "–" : Math.round(one.effective_labels).toLocaleString();
  return [name, el("strong", {}, figure(one.value)), interval, forest(one, from, to), figure(half), wanted, worth];
}

function table(head, rows, numbers) {
  const numeric = (column) => (numbers.has(column) ? "number" : head[column] === "" ? "forest" : null);
  const top = el("tr", {}, ...head.map((text, column) => el("th", { scope: "col", class: numeric(column) }, text)));
  const body = rows.map((cells) => el("tr", {}, ...cells.map((cell, column) => el("td", { class: numeric(column) }, cell))));
  return el("table", {}, el("thead", {}, top), el("tbody", {}, ...body));
}

function drawPath() {
  const { estimates, path, budget } = latest;
  const names = estimates.map((one) => one.metric);
  const select = byId("metric");
  if (names.join("\n") !== [...select.options].map((one) => one.value).join("\n")) {
    select.replaceChildren(...names.map((name) => el("option", { value: name }, name)));
  }
  if (!names.includes(chosen)) chosen = names[0] || null;
  if (chosen === null) return;
  select.value = chosen;
  const one = estimates.find((estimate) => estimate.metric === chosen);
  const points = path.filter((step) => step.metrics[chosen]).map((step) => {
    const [y, low, high] = step.metrics[chosen];
    return { x: step.labels, y, low, high };
  });
  const widths = points.map(({ x, low, high }) => ({ x, y: low === null ? null : (high - low) / 2 }));
  const most = Math.min(budget, 2 * Math.max(10, ...points.map((point) => point.x)));
  byId("path").replaceChildren(
    el("figcaption", {}, `${chosen}, with its interval`),
    lineChart({ points, most, name: chosen, level: one.threshold, levelName: one.threshold === null ? "" : `threshold ${one.threshold}` }),
  );
  byId("width").replaceChildren(
    el("figcaption", {}, "half the width of the interval"),
    lineChart({ points: widths, most, low: 0, name: "half-width", level: one.target, levelName: one.target === null ? "" : `wanted: ± ${one.target}` }),
  );
}

function drawPeople() {
  const { status, agreement, double_share: share } = latest;
  const head = ["annotator", "labels", "skipped or unsure", "on the screen", "s per label", "last seen", "name"];
  const checked = (one) => (one.claimed ? "not authenticated" : one.authenticated ? "own link" : "–");
  const rows = status.annotators.map((one) => [
    one.name || "(no name)", one.labels.toLocaleString(), String(one.skips), String(one.leased), figure(one.seconds_per_label, 1), clock(one.last_at) || "–", checked(one),
  ]);
  byId("people").replaceChildren(rows.length ? table(head, rows, new Set([1, 2, 3, 4])) : el("p", { class: "dim" }, "Nobody yet."));
  const kappa = agreement.kappa === null ? "not defined yet" : agreement.kappa.toFixed(2);
  const twice = share > 0 ? `${Math.round(100 * share)} % of the items go to two people. ` : "";
  byId("agreement").textContent = agreement.points
    ? `${twice}On ${agreement.points} items labelled twice, ${Math.round(100 * agreement.share)} % of the votes agree; Cohen’s kappa ${kappa}. Revealed predictions: ${status.reveals}.`
    : `${twice}No item has been labelled by two people yet. Revealed predictions: ${status.reveals}.`;
}

byId("metric").addEventListener("change", () => {
  chosen = byId("metric").value;
  drawPath();
});
refresh();
setInterval(() => !document.hidden && refresh(), EVERY_MS);
