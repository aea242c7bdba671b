// The owner settles what annotators could not agree on or were unsure about.

import { Away, call } from "./api.js";
import { Choices } from "./choices.js";
import { banner, byId, clock, el, keyOf, say, typing } from "./dom.js";
import { show } from "./viewer.js";

const state = { items: [], at: 0, choices: null, busy: true };

async function load() {
  const answer = await call("/api/owner/queue");
  document.title = `${answer.title} · to settle`;
  byId("title").textContent = answer.title;
  state.items = answer.items;
  state.at = Math.min(state.at, Math.max(0, state.items.length - 1));
  if (!state.choices) state.choices = new Choices(answer.classes, rule);
  await draw();
}

async function draw() {
  const item = state.items[state.at] || null;
  byId("to-settle").textContent = state.items.length;
  byId("nothing").hidden = Boolean(item);
  byId("item").hidden = byId("votes").hidden = byId("editing").hidden = !item;
  state.choices.enable(Boolean(item));
  state.busy = true;
  if (!item) return;
  byId("editing").textContent = `${state.at + 1} of ${state.items.length}: ${item.why === "differ" ? "the annotators differ" : "nobody was sure"} · ${item.id}`;
  const votes = el("dl");
  for (const vote of item.votes) votes.append(el("dt", { dir: "auto" }, vote.annotator || "(no name)"), el("dd", { dir: "auto" }, vote.said));
  byId("votes").replaceChildren(el("h2", {}, "What was said"), votes);
  await show(byId("item"), item);
  state.busy = false;
}

async function rule(label) {
  const item = state.items[state.at];
  if (!item || state.busy) return;
  state.busy = true;
  status("saving", "saving …");
  try {
    await call("/api/owner/rule", { item: item.handle, label });
    status("saved", `saved ${clock(new Date().toISOString())}`);
    banner("");
    say("Settled.");
    await load();
  } catch (error) {
    state.busy = false;
    status("away", "not saved");
    banner(error instanceof Away ? `${error.message} Nothing was recorded; choose again.` : error.message);
  }
}

function status(kind, text) {
  byId("saved").dataset.state = kind;
  byId("saved-text").textContent = text;
}

function step(by) {
  state.at = Math.max(0, Math.min(state.items.length - 1, state.at + by));
  draw();
}

document.addEventListener("keydown", (event) => {
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  const key = keyOf(event);
  const code = state.choices && state.choices.byKey.get(key);
  if (code !== undefined && code !== null) rule(code);
  else if (key === "ArrowLeft") step(-1);
  else if (key === "ArrowRight") step(1);
});
byId("previous").addEventListener("click", () => step(-1));
byId("next").addEventListener("click", () => step(1));
load().catch((error) => banner(error.message));
