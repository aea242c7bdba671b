// The owner's view: what could be decided now, what further labels are likely to bring, and who did what.

import { call } from "./api.js";
import { forest } from "./charts.js";
import { banner, byId, clock, duration, el } from "./dom.js";
import { drawn, renew } from "./morph.js";

const EVERY_MS = 2000;
const MANY = 12; // more metrics than these can be searched
const COST = "altmas.cost per label";
let chosen = null;
let latest = null;

const figure = (value, digits = 3) => (value === null || value === undefined ? "–" : value.toFixed(digits));
const share = (value) => (value === null || value === undefined ? "–" : `${Math.round(100 * value)} %`);
const halfWidth = (one) => (one.low === null ? null : (one.high - one.low) / 2);

async function refresh() {
  try {
    latest = await call(`/api/owner/overview${chosen ? `?metric=${encodeURIComponent(chosen)}` : ""}`);
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
  renew(byId("fresh-text"), text);
}

function draw() {
  if (document.title !== `${latest.title} · overview`) document.title = `${latest.title} · overview`;
  renew(byId("title"), latest.title);
  renew(byId("to-settle"), String(latest.to_settle));
  drawAdvice();
  drawTiles();
  drawEstimates();
  drawPath();
  drawPeople();
  drawCoverage();
  drawNotes();
}

// ---------------------------------------------------------------- what to decide

function drawAdvice() {
  const { advice, status, budget } = latest;
  byId("advice").dataset.state = advice.state;
  renew(byId("now"), ...advice.now.map((text) => el("li", { dir: "auto" }, text)));
  renew(byId("ahead"), advice.ahead);
  const field = byId("budget");
  field.min = status.labels + 1;
  if (document.activeElement !== field && !field.dataset.changed) field.value = Math.min(status.points, Math.max(budget, 2 * status.labels));
  const waiting = latest.overdue;
  byId("close").disabled = waiting <= 0;
  renew(byId("close"), waiting > 0 ? `Close ${waiting.toLocaleString()} unanswered items` : "Close unanswered items");
}

async function act(path, body, said) {
  try {
    const answer = await call(path, body);
    renew(byId("done"), said(answer.changed));
    await refresh();
  } catch (error) {
    renew(byId("done"), error.message);
  }
}

byId("raise").addEventListener("submit", async (event) => {
  event.preventDefault();
  const budget = Number(byId("budget").value);
  await act("/api/owner/budget", { budget }, () => `The budget is now ${budget.toLocaleString()} labels; the change is in the log.`);
  delete byId("budget").dataset.changed;
});
byId("budget").addEventListener("input", () => (byId("budget").dataset.changed = "yes"));
byId("close").addEventListener("click", () => {
  const asked = "Record “no answer” for items that wait though later ones were answered, and that nobody has on the screen? They count as skipped.";
  if (window.confirm(asked)) act("/api/owner/close", {}, (count) => `${count.toLocaleString()} items were closed as “no answer”; it is in the log.`);
});

// ---------------------------------------------------------------- where it stands

function tile(label, value, under) {
  return el("div", { class: "tile" }, el("p", { class: "label" }, label), el("p", { class: "figure" }, value), el("p", { class: "under" }, under));
}

function stillNeeded() {
  const { advice, forecast, status, budget } = latest;
  const left = Math.max(0, budget - status.labels);
  if (advice.state === "reached") return ["none", "the goal is reached"];
  if (advice.state === "missed") return ["more than the budget", "the goal was missed"];
  if (forecast && forecast.more !== null) return [`about ${Math.ceil(forecast.more).toLocaleString()}`, "as likely as not; see above"];
  if (forecast && forecast.chance !== null) return [`over ${left.toLocaleString()}`, "probably more than the budget"];
  return [left.toLocaleString(), "to the end of the budget"];
}

function drawTiles() {
  const { status, budget, supply } = latest;
  const pace = status.seconds_per_label;
  const left = Math.max(0, budget - status.labels);
  const fit = supply.refitting ? "refitting" : "up to date";
  const last = supply.last_fit_labels === null ? "no fit yet" : `last fit: ${supply.last_fit_labels} label${supply.last_fit_labels === 1 ? "" : "s"}`;
  const [more, why] = stillNeeded();
  const each = Number(localStorage.getItem(COST)) || 0;
  const spent = `spent ${(each * status.labels).toLocaleString()}, budget ${(each * budget).toLocaleString()}`;
  const missing = status.unshown ? `, ${status.unshown} images could not be shown` : "";
  renew(
    byId("tiles"),
    tile("Labels", `${status.labels.toLocaleString()} of ${budget.toLocaleString()}`, `${status.skipped} skipped, ${status.unsure} unsure${missing}`),
    tile("Labels still needed", more, why),
    tile("Time to the budget", pace === null ? "–" : duration(left * pace), pace === null ? "no answer was timed" : `at ${pace.toFixed(1)} s per label, one person`),
    tile("Cost to the budget", each ? (each * left).toLocaleString() : "–", el("span", {}, each ? `${spent}. ` : "", el("button", { id: "cost", type: "button", class: "quiet" }, each ? `${each} per label` : "Set the cost of a label"))),
    tile("Model", supply.problem ? "trouble" : fit, supply.problem || `${supply.ready} items ready, ${last}`),
  );
}

byId("tiles").addEventListener("click", (event) => {
  if (event.target.id !== "cost") return;
  const given = window.prompt("What does one label cost? (kept in this browser alone)", localStorage.getItem(COST) || "");
  if (given !== null && Number(given) >= 0) localStorage.setItem(COST, String(Number(given)));
  drawTiles();
});

// ---------------------------------------------------------------- estimates

function drawEstimates() {
  const { estimates, confidence, estimated_at: at, status } = latest;
  const level = `${Math.round(100 * confidence)} % interval`;
  renew(byId("estimates-note"), at === null ? "Being computed." : `From ${at.toLocaleString()} label${at === 1 ? "" : "s"}, method ${status.method}.`);
  byId("find").hidden = estimates.length <= MANY;
  if (!estimates.length) return;
  const wanted = byId("find").value.trim().toLowerCase();
  const head = ["metric", "estimate", level, "drawn", "± now", "± wanted", "labels worth"];
  const rows = estimates.filter((one) => one.metric.toLowerCase().includes(wanted)).map(estimateRow);
  renew(byId("estimates"), table(head, rows, new Set([1, 2, 4, 5, 6])));
}

// From the least to the largest value that a metric can take; what has no bounds is drawn around its own interval.
function axisOf(one) {
  if (one.bounds) return one.bounds;
  const own = [0, one.value, one.low, one.high, one.threshold].filter((value) => value !== null);
  return [Math.min(...own), Math.max(...own) || 1];
}

function estimateRow(one) {
  const [from, to] = axisOf(one);
  const half = halfWidth(one);
  const met = one.target !== null && half !== null && half <= one.target;
  const name = el("span", {}, one.metric, one.note ? el("span", { class: "note" }, one.note) : null);
  const wanted = one.target === null ? "–" : el("span", { class: met ? "met" : "unmet" }, `${figure(one.target)}${met ? " ✓" : " not yet"}`);
  const interval = one.low === null ? "–" : `${figure(one.low)} – ${figure(one.high)}`;
  const worth = one.worth === null ? "–" : Math.round(one.worth).toLocaleString();
  return [name, el("strong", {}, figure(one.value)), interval, forest(one, from, to), figure(half), wanted, worth];
}

function table(head, rows, numbers) {
  const kind = (column) => (numbers.has(column) ? "number" : head[column] === "drawn" ? "forest" : null);
  const top = el("tr", {}, ...head.map((text, column) => el("th", { scope: "col", class: kind(column) }, text)));
  const cell = (content, column) => el(column ? "td" : "th", { class: kind(column), scope: column ? null : "row", dir: column ? null : "auto" }, content);
  return el("table", {}, el("thead", {}, top), el("tbody", {}, ...rows.map((cells) => el("tr", {}, ...cells.map(cell)))));
}

function drawPath() {
  const { estimates, charts } = latest;
  const names = estimates.map((one) => one.metric);
  const select = byId("metric");
  renew(select, ...names.map((name) => el("option", { value: name }, name)));
  if (!charts) return;
  if (document.activeElement !== select) select.value = charts.metric;
  renew(byId("path"), drawn(charts.path));
  renew(byId("width"), drawn(charts.width));
}

// ---------------------------------------------------------------- people, coverage, notes

function drawPeople() {
  const { status, people, agreement, double_share: doubled } = latest;
  const head = ["annotator", "labels", "skipped or unsure", "on their page", "s per label", "too fast", "others agree", "last seen", "name"];
  const checked = (one) => (one.claimed ? "not authenticated" : one.authenticated ? "own link" : "–");
  const rows = people.map((one) => [
    one.name || "(no name)", one.labels.toLocaleString(), String(one.skips), String(one.leased), figure(one.seconds_per_label, 1), String(one.too_fast),
    one.compared ? `${share(one.agree)} of ${one.compared}` : "–", clock(one.last_at) || "–", checked(one),
  ]);
  renew(byId("people"), rows.length ? table(head, rows, new Set([1, 2, 3, 4, 5, 6])) : el("p", { class: "dim" }, "Nobody yet."));
  const kappa = agreement.kappa === null ? "not defined yet" : agreement.kappa.toFixed(2);
  const twice = doubled > 0 ? `${Math.round(100 * doubled)} % of the items go to two people. ` : "";
  const fast = "Too fast: under a quarter of the median time. ";
  renew(
    byId("agreement"),
    agreement.points
      ? `${twice}On ${agreement.points} items labelled twice, ${share(agreement.share)} of the votes agree; Cohen’s kappa ${kappa}. ${fast}Revealed predictions: ${status.reveals}.`
      : `${twice}No item has been labelled by two people yet. ${fast}Revealed predictions: ${status.reveals}.`,
  );
}

function covered(rows) {
  return el("ul", { class: "cover" }, ...rows.map(([name, labels, points]) => el("li", {}, el("span", { dir: "auto" }, name), el("span", { class: labels ? null : "none" }, `${labels.toLocaleString()} of ${points}`))));
}

function drawCoverage() {
  const { model, classes, slices } = latest.coverage;
  const none = classes.filter((one) => !one.labels).length;
  renew(byId("cover-note"), `Labels of each class beside how many points ${model} says it has; ${none ? `${none} of ${classes.length} classes have no label yet` : "every class has a label"}.`);
  const parts = [covered(classes.map((one) => [one.name, one.labels, one.predicted.toLocaleString()]))];
  for (const { name, values, more } of slices) {
    parts.push(el("p", { class: "cover-head" }, `Slice ${name}${more ? ` (the ${values.length} with the fewest labels; ${more} more)` : ""}`));
    parts.push(covered(values.map((one) => [one.value, one.labels, one.points.toLocaleString()])));
  }
  renew(byId("cover"), ...parts);
}

function drawNotes() {
  const said = latest.notes.map((note) => el("li", { dir: "auto" }, note.text, el("br"), el("span", { class: "dim" }, `${note.annotator || "(no name)"}${note.id === null ? "" : ` on ${note.id}`}, ${clock(note.at)}`)));
  renew(byId("notes"), said.length ? el("ul", { class: "remarks" }, ...said) : el("p", { class: "dim" }, "No note yet."));
}

byId("metric").addEventListener("change", () => {
  chosen = byId("metric").value;
  refresh();
});
byId("find").addEventListener("input", drawEstimates);
refresh();
setInterval(() => !document.hidden && refresh(), EVERY_MS);
