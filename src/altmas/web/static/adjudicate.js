// The owner settles what annotators could not agree on or were unsure about.

import { Away, call } from "./api.js";
import { choicesOf } from "./choices.js";
import { banner, byId, clock, el, keyOf, say, typing } from "./dom.js";
import { show } from "./viewer.js";

const BLIND = "altmas.blind rulings";
const state = { items: [], settled: [], classes: [], at: 0, choices: null, busy: true, blind: localStorage.getItem(BLIND) === "yes" };

async function load(first = null) {
  const answer = await call("/api/owner/queue");
  document.title = `${answer.title} · to settle`;
  byId("title").textContent = answer.title;
  Object.assign(state, { items: answer.items, settled: answer.settled, classes: answer.classes });
  const wanted = first === null ? -1 : state.items.findIndex((item) => item.id === first);
  state.at = wanted >= 0 ? wanted : Math.min(state.at, Math.max(0, state.items.length - 1));
  if (!state.choices) state.choices = await choicesOf(answer.classes, rule);
  await draw();
}

async function draw() {
  const item = state.items[state.at] || null;
  byId("to-settle").textContent = state.items.length;
  byId("nothing").hidden = Boolean(item);
  for (const id of ["item", "votes", "voted", "editing"]) byId(id).hidden = !item;
  state.choices.enable(Boolean(item));
  for (const id of ["unsettled", "previous", "next"]) byId(id).disabled = !item;
  byId("undo").disabled = !state.settled.length;
  drawBlind();
  state.busy = true;
  byId("note").value = "";
  if (!item) return;
  const why = item.why === "differ" ? "the annotators differ" : "nobody was sure";
  byId("editing").textContent = `${state.at + 1} of ${state.items.length}: ${why} · ${item.id}`;
  byId("votes").replaceChildren();
  byId("voted").replaceChildren();
  await show(byId("item"), item);
  state.busy = false; // a key pressed before the item could be seen would settle it unseen
  drawVotes(item);
  say(`${why}. ${item.votes.map((vote) => vote.said).join(", ")}`);
}

/** Who said it, or a letter for each while names are hidden: whose vote it was should not weigh. */
const whose = (name, at) => (state.blind ? String.fromCharCode(65 + (at % 26)) : name || "(no name)");

function drawVotes(item) {
  const votes = el("dl");
  item.votes.forEach((vote, at) => votes.append(el("dt", { dir: "auto" }, whose(vote.annotator, at)), el("dd", { dir: "auto" }, vote.said)));
  const place = (name) => Math.max(0, item.votes.findIndex((vote) => vote.annotator === name));
  const notes = item.notes.map((note) => el("li", { dir: "auto" }, `${whose(note.annotator, place(note.annotator))}: ${note.text}`));
  byId("votes").replaceChildren(el("h2", {}, "What was said"), votes, ...(notes.length ? [el("ul", { "aria-label": "Notes" }, ...notes)] : []));
  byId("voted").replaceChildren(...votedClasses(item).map(votedButton));
}

/** [code, votes] of the classes that somebody voted for, those with most votes first. */
function votedClasses(item) {
  const counts = new Map();
  for (const { said } of item.votes) {
    const code = state.classes.findIndex((one) => one.name === said);
    if (code >= 0) counts.set(code, (counts.get(code) || 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1]);
}

function votedButton([code, votes]) {
  const { name, definition } = state.classes[code];
  const button = el("button", { type: "button", "data-code": code, onclick: () => rule(code) }, el("span", { dir: "auto" }, name), el("small", {}, votes === 1 ? "1 vote" : `${votes} votes`));
  return el("div", {}, button, definition ? el("p", { class: "definition", dir: "auto" }, definition) : null);
}

async function rule(label) {
  const item = state.items[state.at];
  if (!item || state.busy) return;
  state.busy = true;
  status("saving", "saving …");
  try {
    await call("/api/owner/rule", { item: item.handle, label, note: byId("note").value.trim() });
    settled(label === null ? "Recorded: cannot be settled." : "Settled.");
    await load();
  } catch (error) {
    refused(error);
  }
}

async function undo() {
  const [last] = state.settled;
  if (!last) return;
  status("saving", "saving …");
  try {
    await call("/api/owner/unrule", { seq: last.seq });
    settled("The last ruling was taken back.");
    await load(last.id);
  } catch (error) {
    refused(error);
  }
}

function settled(words) {
  status("saved", `saved ${clock(new Date().toISOString())}`);
  banner("");
  say(words);
}

function refused(error) {
  state.busy = false;
  status("away", "not saved");
  banner(error instanceof Away ? `${error.message} Nothing was recorded; choose again.` : error.message);
}

function status(kind, text) {
  byId("saved").dataset.state = kind;
  byId("saved-text").textContent = text;
}

function step(by) {
  state.at = Math.max(0, Math.min(state.items.length - 1, state.at + by));
  draw();
}

function drawBlind() {
  byId("blind").setAttribute("aria-pressed", String(state.blind));
  byId("blind").textContent = state.blind ? "Show names" : "Hide names";
}

byId("blind").addEventListener("click", () => {
  state.blind = !state.blind;
  localStorage.setItem(BLIND, state.blind ? "yes" : "no");
  drawBlind();
  if (state.items[state.at]) drawVotes(state.items[state.at]);
});

const keys = { ArrowLeft: () => step(-1), ArrowRight: () => step(1), u: () => rule(null), z: undo, "/": () => byId("search").focus() };

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.repeat || event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  const key = keyOf(event);
  const code = state.choices && state.choices.byKey.get(key);
  if (code !== undefined && code !== null) rule(code);
  else if (keys[key]) {
    event.preventDefault();
    keys[key]();
  }
});
byId("previous").addEventListener("click", () => step(-1));
byId("next").addEventListener("click", () => step(1));
byId("unsettled").addEventListener("click", () => rule(null));
byId("undo").addEventListener("click", undo);
load().catch((error) => banner(error.message));
