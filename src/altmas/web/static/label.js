// The labelling page: shows what the session asks, sends what the annotator says, says what is saved.

import { Away, call } from "./api.js";
import { Choices } from "./choices.js";
import { ask, dialogOpen, pairs, prose, tell } from "./dialog.js";
import { banner, byId, clock, duration, el, keyOf, say, typing } from "./dom.js";
import { Outbox } from "./outbox.js";
import { Stopwatch } from "./stopwatch.js";
import { forget, preload, show } from "./viewer.js";

const POLL_MS = 5000; // looks for news and keeps the items while somebody is at the screen
const WAIT_MS = 400; // while there is no item
const GUARD_MS = 150; // a second label within this time is a key that was hit twice
const REASONS = ["unreadable", "no class fits", "damaged or empty", "several classes"];

const page = {
  setup: null,
  name: "",
  hand: [], // items to label; the first is on the screen
  past: [], // own votes that were gone back to, the newest first
  at: -1, // which of them is on the screen; -1 for none
  header: null,
  nothing: "wait",
  outbox: null,
  choices: null,
  busy: true,
  paused: false,
  away: "",
  stale: false,
  watch: new Stopwatch(),
  saidAt: -Infinity, // when something was said last
};

const current = () => (page.at >= 0 ? page.past[page.at] : page.hand[0] || null);
const stored = (what) => `altmas.${page.setup.session}.${what}`;

// ---------------------------------------------------------------- the beginning

async function begin() {
  page.setup = await patiently(() => call("/api/setup"));
  document.title = `${page.setup.title} · label`;
  byId("title").textContent = page.setup.title;
  page.choices = new Choices(page.setup.classes, (code) => vote({ kind: "label", label: code }));
  byId("instructions").hidden = !page.setup.instructions;
  await introduce(page.setup.person || remembered("name") || page.setup.annotator || "");
  onlyTab();
  listen();
  const own = page.setup.person ? `.${page.setup.person}` : ""; // nobody sends what somebody else left in this browser
  page.outbox = new Outbox(stored("outbox" + own), { changed: drawSaved, answered, refused, have: () => page.hand.map((item) => item.handle) });
  await refresh();
  setInterval(poll, WAIT_MS);
  if (page.setup.instructions && !remembered("instructed")) {
    remember("instructed", "yes");
    await tell("Instructions", prose(page.setup.instructions));
  }
}

async function introduce(name) {
  if (!name) {
    const input = el("input", { type: "text", maxlength: 100, autocomplete: "name", "aria-label": "Your name", value: page.name });
    const hint = "Your labels are kept under this name. Use the same one when you come back. Nobody checks names here: the log says that they are not authenticated.";
    const body = [input, el("p", { class: "hint" }, hint)];
    name = await ask({ title: "Who is labelling?", body, ok: "Begin", must: !page.name, focus: input, read: () => input.value.trim() });
  }
  if (!name || name === page.name) return;
  page.name = name;
  if (!page.setup.person) remember("name", name);
  drawPerson();
}

/** Who labels; a name that came with a link of its own is not for changing, and any other is said to be a claim. */
function drawPerson() {
  const own = Boolean(page.setup.person);
  const button = byId("person");
  button.hidden = false;
  button.disabled = own;
  button.textContent = page.name;
  button.title = own ? "This name came with your own link" : "Change the name";
  button.setAttribute("aria-label", own ? `Labelling as ${page.name}` : `Labelling as ${page.name}; change the name`);
  byId("names").textContent = own ? "your own link" : "names are not authenticated";
}

async function changePerson() {
  await page.outbox.drained();
  const before = page.name;
  await introduce("");
  if (page.name === before) return;
  page.hand.splice(0).forEach(forget);
  leavePast();
  echo("");
  page.nothing = "wait";
  draw();
  await refresh();
}

/** Where a page is open twice, the newer one goes on and the older one says so. */
function onlyTab() {
  const channel = new BroadcastChannel(stored("tab"));
  const here = () => channel.postMessage(page.name);
  channel.addEventListener("message", (event) => {
    if (event.data !== page.name || page.paused) return;
    page.paused = true;
    draw();
  });
  byId("nothing").addEventListener("click", (event) => {
    if (!(event.target instanceof Element) || !event.target.closest("#here")) return;
    page.paused = false;
    here();
    page.hand.splice(0).forEach(forget);
    draw();
    refresh();
  });
  here();
}

function remembered(what) {
  try {
    return localStorage.getItem(stored(what));
  } catch {
    return null;
  }
}

function remember(what, value) {
  try {
    localStorage.setItem(stored(what), value);
  } catch {
    // A browser without storage asks again next time.
  }
}

// ---------------------------------------------------------------- items come

async function patiently(request) {
  for (;;) {
    try {
      const answer = await request();
      heard();
      return answer;
    } catch (error) {
      if (!(error instanceof Away)) {
        banner(error.message);
        throw error;
      }
      lost(error.message);
      await new Promise((done) => setTimeout(done, 700));
    }
  }
}

let asking = false;
async function refresh() {
  if (asking || page.paused) return;
  asking = true;
  try {
    take(await call("/api/next", { annotator: page.name, have: page.hand.map((item) => item.handle) }));
    heard();
  } catch (error) {
    if (error instanceof Away) lost(error.message);
    else banner(error.message, true);
  } finally {
    asking = false;
  }
}

let polled = 0;
function poll() {
  const now = performance.now();
  const hungry = !page.hand.length || page.away || page.stale;
  if (document.hidden || page.paused || page.outbox.entries.length || !(hungry || page.watch.present())) return;
  if (now - polled < (hungry ? WAIT_MS : POLL_MS)) return;
  polled = now;
  refresh();
}

function take(answer) {
  const before = current();
  const known = new Set([...page.hand.map((item) => item.handle), ...page.outbox.items()]);
  for (const item of answer.items) {
    if (known.has(item.handle)) continue;
    preload(item);
    page.hand.push(item);
  }
  page.nothing = answer.nothing;
  page.stale = !answer.header; // left out in a quick series of labels: asked for when it ends
  if (answer.header) page.header = answer.header;
  else if (page.header) Object.assign(page.header, { last_seq: answer.seq, saved_at: answer.saved_at });
  if (page.header) drawHeader();
  if (before !== current() || !current()) draw();
}

function lost(why) {
  if (!page.away) say("The server does not answer.");
  page.away = why;
  const kept = page.outbox && page.outbox.entries.length;
  const mine = kept ? ` ${kept === 1 ? "One label is" : `${kept} labels are`} kept in this browser and will be sent when it is back.` : " Trying again.";
  banner(why + mine);
  drawSaved();
}

function heard() {
  if (!page.away) return;
  page.away = "";
  banner("");
  say("The server is back.");
  drawSaved();
}

// ---------------------------------------------------------------- what the annotator says

function vote(said) {
  const item = current();
  if (!item || page.busy || page.paused || dialogOpen()) return;
  const now = performance.now();
  if (now - page.saidAt < GUARD_MS) return say("Ignored: it came too soon after the last one.");
  page.saidAt = now;
  const revises = page.at >= 0 ? item.vote.seq : null;
  const seconds = page.watch.read();
  const name = said.kind === "label" ? page.setup.classes[said.label].name : said.kind;
  if (page.at >= 0) {
    leavePast();
  } else {
    forget(page.hand.shift());
  }
  draw();
  page.outbox.push("/api/vote", { annotator: page.name, item: item.handle, seconds, revises, ...said });
  echo(name);
  say(`${name}. ${current() ? "Next item." : ""}`);
}

/** What was said last, with a way to take it back; nothing for "". */
function echo(name) {
  byId("echo").hidden = !name;
  byId("echo-text").textContent = name;
}

function answered(entry, answer) {
  heard();
  if (answer.items) take(answer);
  else {
    page.header = answer.header;
    drawHeader();
  }
}

function refused(entry, error) {
  banner(`Not recorded: ${error.message}`, true);
  refresh();
}

async function undo() {
  await page.outbox.drained();
  const seq = page.header && page.header.last_seq;
  if (!seq) return say("Nothing to undo.");
  const answer = await request("/api/undo", { annotator: page.name, seq });
  if (!answer) return;
  page.header = answer.header;
  page.saidAt = -Infinity;
  echo("");
  leavePast();
  const undone = answer.undone;
  if (undone && undone.vote) {
    page.past = [undone];
    page.at = 0;
  } else if (undone) {
    page.hand = [undone, ...page.hand.filter((item) => item.handle !== undone.handle)];
  } else {
    await refresh();
  }
  drawHeader();
  draw();
  say("Taken back.");
}

async function back() {
  await page.outbox.drained();
  if (page.at + 1 >= page.past.length) {
    const before = page.past.length ? `&before=${page.past.at(-1).vote.seq}` : "";
    const answer = await request(`/api/mine?limit=1&annotator=${encodeURIComponent(page.name)}${before}`);
    if (!answer) return;
    if (!answer.votes.length) return say("That was the first one.");
    page.past.push(...answer.votes);
  }
  page.at += 1;
  draw();
}

function forward() {
  if (page.at < 0) return;
  if (page.at === 0) leavePast();
  else page.at -= 1;
  draw();
}

function leavePast() {
  page.past.splice(0).forEach(forget);
  page.at = -1;
}

/** A request that is not kept for later: its failure is told. */
async function request(path, body) {
  try {
    return await call(path, body);
  } catch (error) {
    banner(error instanceof Away ? `${error.message} Nothing was changed.` : error.message, true);
    return null;
  }
}

async function skip() {
  if (!current() || page.busy) return;
  const input = el("input", { type: "text", maxlength: 2000, "aria-label": "Reason", placeholder: "Reason" });
  const pick = (reason) => el("button", { type: "button", onclick: () => submitted(reason) }, reason); // no submit button: Enter would press the first one
  const submitted = (reason) => {
    input.value = reason;
    byId("dialog-form").requestSubmit();
  };
  const body = [el("div", { class: "reasons" }, ...REASONS.map(pick)), input];
  const reason = await ask({ title: "Skip: why can it not be labelled?", body, ok: "Skip", focus: input, read: () => ({ text: input.value.trim() }) });
  if (reason) vote({ kind: "skip", reason: reason.text || "no reason given" });
}

async function note() {
  const item = current();
  if (!item) return;
  const text = el("textarea", { maxlength: 5000, "aria-label": "Note" });
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) byId("dialog-form").requestSubmit();
  });
  const body = [text, el("p", { class: "hint" }, "Ctrl+Enter saves. The owner of the session sees notes; other annotators do not.")];
  const written = await ask({ title: "A note on this item", body, ok: "Save", focus: text, read: () => text.value.trim() });
  if (written) page.outbox.push("/api/note", { annotator: page.name, item: item.handle, text: written });
}

async function reveal() {
  const item = current();
  if (!item) return;
  const body = prose("A label given after a look at the prediction is not an independent one. The look is written down and appears in the report.");
  if (!(await ask({ title: "Show what the model predicts?", body, ok: "Show it" }))) return;
  const answer = await request("/api/reveal", { annotator: page.name, item: item.handle });
  if (!answer) return;
  item.revealed = answer.score === null ? answer.prediction : `${answer.prediction} (${(100 * answer.score).toFixed(0)} %)`;
  drawBlind();
  say(`The model predicts ${item.revealed}`);
}

const showInstructions = () => page.setup.instructions && tell("Instructions", prose(page.setup.instructions));

function showDefinitions() {
  const rows = page.setup.classes.map((one) => [
    [...(one.key ? [one.key.toUpperCase()] : []), el("span", { dir: "auto" }, one.name)],
    one.definition || "no definition was given",
  ]);
  tell("Classes", pairs(rows));
}

function showKeys() {
  const keyed = page.setup.classes.filter((one) => one.key);
  const first = [keyed[0].key, ...(keyed.length > 1 ? [keyed.at(-1).key] : [])].map((key) => key.toUpperCase());
  tell("Keys", pairs([
    [first, "choose a class: saves and goes on"],
    ["/", "find a class by name; Enter takes the first"],
    ["U", "unsure: an expert will see it"],
    ["S", "skip, with a reason"],
    [["Z", "Ctrl+Z"], "undo the last label, skip or unsure, also after a restart"],
    [["←", "→"], "back to what you said before, to look or to change it; forward again"],
    ["N", "note on this item"],
    ["R", "reveal the prediction (is written down)"],
    ["I", "instructions"],
    ["C", "class definitions"],
    [["+", "−", "."], "image: zoom in, zoom out, reset"],
    [["Shift", "arrows"], "image: move"],
    ["?", "this list"],
  ]));
}

// ---------------------------------------------------------------- drawing

let drawn = 0;
async function draw() {
  const turn = ++drawn;
  const item = page.paused ? null : current();
  byId("nothing").hidden = Boolean(item);
  byId("item").hidden = !item;
  drawEditing();
  drawBlind();
  page.choices.mark(page.at >= 0 && item ? item.vote.label : null);
  for (const kind of ["unsure", "skip"]) byId(kind).classList.toggle("chosen", page.at >= 0 && Boolean(item) && item.vote.kind === kind);
  if (!item) {
    setBusy(true);
    drawNothing();
    return;
  }
  setBusy(item.parts.some((part) => part.kind === "image"));
  const ready = show(byId("item"), item);
  byId("item").dataset.handle = item.handle;
  page.watch.restart();
  await ready;
  if (turn !== drawn) return;
  setBusy(false);
  page.watch.restart();
}

function setBusy(busy) {
  page.busy = busy;
  document.querySelector(".item").setAttribute("aria-busy", String(busy));
  page.choices.enable(Boolean(current()) && !page.paused);
}

function drawNothing() {
  const texts = {
    wait: ["One moment", (page.header && page.header.supply.problem) || "The next items are being chosen."],
    others: ["Nothing for you right now", "The remaining items are with other annotators. One that is not labelled comes back after a while; this page will show it."],
    done: ["All done", "There is nothing left to label. Thank you."],
  };
  const [title, text] = page.paused ? ["Open in another tab", "Labelling goes on there, so that nothing is labelled twice."] : texts[page.nothing] || texts.wait;
  byId("nothing-title").textContent = title;
  byId("nothing-text").textContent = text;
  const here = byId("here");
  if (page.paused && !here) byId("nothing").append(el("button", { id: "here", type: "button", class: "primary" }, "Continue here"));
  if (!page.paused && here) here.remove();
  if (page.nothing !== "wait" || page.paused) say(title);
}

function drawEditing() {
  const item = current();
  const editing = page.at >= 0 && item;
  byId("editing").hidden = !editing;
  if (!editing) return;
  const { kind, label, reason } = item.vote;
  const said = kind === "label" ? page.setup.classes[label].name : kind + (reason ? ` (${reason})` : "");
  byId("editing").textContent = `You said: ${said}. Choose again to change it, → to go on.`;
  say(byId("editing").textContent);
}

function drawBlind() {
  const item = current();
  byId("blind").textContent = item && item.revealed ? `model predicts: ${item.revealed}` : "prediction hidden";
  byId("blind").classList.toggle("revealed", Boolean(item && item.revealed));
}

function drawSaved() {
  const waiting = page.outbox ? page.outbox.entries.length : 0;
  const problem = page.away || (page.outbox && page.outbox.problem);
  const savedAt = page.header && page.header.saved_at;
  let [state, text] = savedAt ? ["saved", `saved ${clock(savedAt)}`] : ["idle", "nothing to save yet"];
  if (waiting) [state, text] = ["saving", "saving …"];
  if (problem) [state, text] = ["away", waiting ? `not saved yet: ${waiting}` : "no connection"];
  if (waiting && problem && problem !== page.away) lost(problem);
  byId("saved").dataset.state = state;
  byId("saved-text").textContent = text;
}

function drawHeader() {
  const { labels, budget, mine, seconds_per_label: pace, seconds_left: left, supply } = page.header;
  byId("count").textContent = `${labels.toLocaleString()} of ${budget.toLocaleString()} labels`;
  byId("count").title = `${mine} of them by ${page.name}`;
  byId("bar-fill").style.width = `${Math.min(100, (100 * labels) / Math.max(1, budget))}%`;
  byId("bar").setAttribute("aria-valuemax", budget);
  byId("bar").setAttribute("aria-valuenow", labels);
  byId("pace").textContent = pace === null ? "" : `${pace < 10 ? pace.toFixed(1) : Math.round(pace)} s each · about ${duration(left)} left`;
  const ready = Math.max(0, page.hand.length - 1) + supply.ready;
  const fit = supply.last_fit_labels === null ? "" : `last fit: ${supply.last_fit_labels} labels`;
  const state = supply.problem || (supply.refitting ? "model refitting in the background" : "model up to date");
  byId("supply").textContent = [`next ${ready} ready`, state, fit].filter(Boolean).join(" · ");
  drawSaved();
}

// ---------------------------------------------------------------- keys and buttons

const commands = {
  u: () => vote({ kind: "unsure" }),
  s: skip,
  z: undo,
  n: note,
  r: reveal,
  i: showInstructions,
  c: showDefinitions,
  "?": showKeys,
  "/": () => !byId("search-box").hidden && byId("search").focus(),
  "+": () => zoomed(1.4),
  "=": () => zoomed(1.4),
  "-": () => zoomed(1 / 1.4),
  ".": () => byId("item").picture && byId("item").picture.reset(),
  ArrowLeft: back,
  ArrowRight: forward,
  Escape: forward,
};

const zoomed = (factor) => byId("item").picture && byId("item").picture.zoom(factor);
const MOVES = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };

function pressed(event) {
  if (event.repeat || dialogOpen() || page.paused) return;
  const key = keyOf(event);
  if ((event.ctrlKey || event.metaKey) && key === "z" && !typing(event.target)) {
    event.preventDefault();
    undo();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  if (event.target instanceof Element && event.target.matches("input[type=range]") && key.startsWith("Arrow")) return;
  if (event.shiftKey && MOVES[key]) {
    if (byId("item").picture) byId("item").picture.move(...MOVES[key]);
    event.preventDefault();
    return;
  }
  const code = page.choices.byKey.get(key);
  if (code !== undefined) vote({ kind: "label", label: code });
  else if (commands[key]) commands[key]();
  else return;
  event.preventDefault();
}

function listen() {
  document.addEventListener("keydown", pressed);
  const buttons = {
    unsure: commands.u, skip, undo, back, note, reveal, instructions: showInstructions, definitions: showDefinitions, keys: showKeys,
    person: changePerson, "echo-undo": undo, "banner-close": () => banner(""),
  };
  for (const [id, pressedButton] of Object.entries(buttons)) byId(id).addEventListener("click", pressedButton);
  document.addEventListener("visibilitychange", () => !document.hidden && refresh());
  window.addEventListener("beforeunload", (event) => page.outbox.entries.length && page.outbox.problem && event.preventDefault());
}

begin();
