// The labelling page: shows what the session asks, sends what the annotator says, says what is saved.

import { Away, call, part } from "./api.js";
import { breakable, choicesOf } from "./choices.js";
import { ask, dialogOpen, prose, tell } from "./dialog.js";
import { banner, byId, clock, duration, el, keyOf, say, typing } from "./dom.js";
import { Outbox } from "./outbox.js";
import { Stopwatch } from "./stopwatch.js";
import { forget, preload, show } from "./viewer.js";

const POLL_MS = 5000; // looks for news and keeps the items while somebody is at the screen
const WAIT_MS = 400; // while there is no item
const GUARD_MS = 150; // a second label within this time is a key that was hit twice
const STRIP = 8; // own votes that are listed

export const page = {
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
  fetching: false, // whether a script is being fetched that somebody waits for
  away: "",
  stale: false,
  watch: new Stopwatch(),
  saidAt: -Infinity, // when something was said last
  asks: false, // whether to stop is asked instead of showing an item
  asksSince: 0,
  strip: [], // own votes: {handle, name, seq}, the newest first
  single: true, // whether keys without Ctrl do anything
};

export const current = () => (page.at >= 0 ? page.past[page.at] : page.hand[0] || null);
const stored = (what) => `altmas.${page.setup.session}.${what}`;

// ---------------------------------------------------------------- the beginning

async function begin() {
  page.setup = await patiently(() => call("/api/setup"));
  document.title = `${page.setup.title} · label`;
  byId("title").textContent = page.setup.title;
  byId("question").textContent = page.setup.question;
  page.single = remembered("single") !== "no";
  const { classes, order, grades, pair } = page.setup;
  const recent = JSON.parse(remembered("recent") || "[]");
  const told = { order, grades, pair, recent, remember: (codes) => remember("recent", JSON.stringify(codes)) };
  page.choices = await patiently(() => choicesOf(classes, (code) => vote({ kind: "label", label: code }), told));
  drawKeys();
  byId("instructions").hidden = !page.setup.instructions;
  byId("reveal").hidden = byId("blind").hidden = !page.setup.reveal;
  await introduce(page.setup.person || remembered("name") || page.setup.annotator || "");
  onlyTab();
  listen();
  const own = page.setup.person ? `.${page.setup.person}` : ""; // nobody sends what somebody else left in this browser
  page.outbox = new Outbox(stored("outbox" + own), { changed: drawSaved, answered, refused, have: () => page.hand.map((item) => item.handle) });
  await refresh();
  askToStop();
  setInterval(poll, WAIT_MS);
  history();
  if (page.setup.instructions && !remembered("instructed")) {
    remember("instructed", "yes");
    await tell("Instructions", prose(page.setup.instructions));
  }
}

export async function introduce(name) {
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

/** Where a page is open twice, the newer one goes on and the older one says so. */
function onlyTab() {
  const channel = new BroadcastChannel(stored("tab"));
  const here = () => channel.postMessage(page.name);
  channel.addEventListener("message", (event) => {
    if (event.data !== page.name || page.paused) return;
    page.paused = true;
    draw();
  });
  page.here = () => {
    page.paused = false;
    here();
    page.hand.splice(0).forEach(forget);
    draw();
    refresh();
  };
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
export async function refresh() {
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
  if (page.nothing === "stopped") page.hand.splice(0).forEach(forget);
  page.stale = !answer.header; // left out in a quick series of labels: asked for when it ends
  if (answer.header) page.header = answer.header;
  else if (page.header) Object.assign(page.header, { last_seq: answer.seq, saved_at: answer.saved_at });
  if (page.header) drawHeader();
  if (before !== current() || !current()) draw();
}

function lost(why) {
  if (!page.away) say("The server does not answer.");
  page.away = why;
  drawSaved();
  if (!current()) drawNothing();
}

function heard() {
  if (!page.away) return;
  page.away = "";
  banner("");
  say("The server is back.");
  drawSaved();
}

// ---------------------------------------------------------------- what the annotator says

export function vote(said) {
  const item = current();
  if (!item || page.busy || page.paused || page.fetching || page.asks || dialogOpen()) return;
  const now = performance.now();
  if (said.kind === "label" && item.missing && !item.anyway) return say("Not labelled: an image is missing. Skip it, or label it anyway.");
  if (now - page.saidAt < GUARD_MS) return say("Ignored: it came too soon after the last one.");
  page.saidAt = now;
  const revises = page.at >= 0 ? item.vote.seq : null;
  const seconds = page.watch.read();
  const name = said.kind === "label" ? page.choices.named(said.label) : said.kind;
  if (said.kind === "label") page.choices.took(said.label);
  if (page.at >= 0) {
    leavePast();
  } else {
    forget(page.hand.shift());
  }
  if (!askToStop()) draw();
  page.outbox.push("/api/vote", { annotator: page.name, item: item.handle, seconds, revises, ...said });
  echo(name);
  page.strip = [{ handle: item.handle, name, seq: null }, ...page.strip.filter((one) => one.handle !== item.handle)];
  drawStrip();
  say(`${name}. ${current() && !page.asks ? `Next item: ${announced(current())}` : ""}`);
}

/** The beginning of an item, for people who listen. */
function announced(item) {
  const texts = item.parts.map((part) => (part.kind === "image" ? "an image" : [part.name, part.text].filter(Boolean).join(": ")));
  return texts.join("; ").slice(0, 160);
}

/** What was said last, with a way to take it back; nothing for "". */
export function echo(name) {
  byId("echo").hidden = !name;
  byId("echo-text").replaceChildren(...breakable(name));
}

function answered(entry, answer) {
  heard();
  const said = page.strip.find((one) => one.handle === entry.body.item);
  if (said && answer.seq) said.seq = answer.seq;
  if (entry.path === "/api/note") noted(entry.body.item, answer.note);
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

/** A function of a script that is fetched when it is first wanted. */
const later = (script, name) => async (...given) => {
  page.fetching = true; // keys meant for what comes are not taken for labels
  const fetched = await request(() => part(script));
  page.fetching = false;
  if (fetched) await fetched[name](...given);
};
/** One of past.js: it needs the server, and what was said before has to be there. */
const past = (name) => async (...given) => {
  await page.outbox.drained();
  await later("past", name)(...given);
};
const undo = past("undo");
const back = past("back");
const revisit = past("revisit");
const reveal = past("reveal");
const changePerson = past("changePerson");
const note = () => current() && later("forms", "note")(current());
const skip = () => current() && !page.busy && later("forms", "skip")(current());

function forward() {
  if (page.at < 0) return;
  if (page.at === 0) leavePast();
  else page.at -= 1;
  draw();
}

/** Own votes, the newest first. */
export const own = (which) => call(`/api/mine?annotator=${encodeURIComponent(page.name)}&${which}`);

/** The votes before this page was opened. */
export async function history() {
  const answer = await request(() => own(`limit=${STRIP}`));
  if (!answer) return;
  const known = new Set(page.strip.map((one) => one.handle));
  const older = answer.votes.filter((one) => !known.has(one.handle));
  page.strip.push(...older.map((one) => ({ handle: one.handle, name: said(one), seq: one.vote.seq })));
  drawStrip();
}

/** What was said about an item that was gone back to. */
function said(item) {
  const { kind, label, reason } = item.vote;
  page.choices.turn(item.sides);
  return kind === "label" ? page.choices.named(label) : kind + (reason ? ` (${reason})` : "");
}

export function leavePast() {
  page.past.splice(0).forEach(forget);
  page.at = -1;
}

/** What the server answers, or null after its failure is told: it is not kept for later. */
export async function request(asked) {
  try {
    return await asked();
  } catch (error) {
    banner(error instanceof Away ? `${error.message} Nothing was changed.` : error.message, true);
    return null;
  }
}

/** A note is on disk: it is shown, and says so. */
function noted(handle, note) {
  for (const item of [...page.hand, ...page.past]) if (item.handle === handle) item.note = note;
  drawNote();
  say(note ? "Note saved." : "Note taken back.");
}

/** Ask whether to stop, once, where an item would come next. */
function askToStop() {
  const goal = page.header && page.header.goal;
  page.asks = Boolean(goal && goal.reached && !goal.choice && (page.hand.length || page.outbox.entries.length));
  page.asksSince = performance.now();
  if (page.asks) draw();
  return page.asks;
}

const showInstructions = () => page.setup.instructions && tell("Instructions", prose(page.setup.instructions));

const showDefinitions = () => later("help", "showDefinitions")(page);
const showKeys = () => later("help", "showKeys")(page, keysUsed);

/** Whether keys without Ctrl do anything from now on. */
function keysUsed(used) {
  page.single = used;
  remember("single", used ? "yes" : "no");
  drawKeys();
}

/** The keys on the buttons, as they work now. */
function drawKeys() {
  document.body.classList.toggle("no-keys", !page.single);
  if (page.choices.typed) for (const key of document.querySelectorAll(".doubt kbd, .tools kbd")) if (/^[A-Z]$/.test(key.textContent)) key.textContent = `⇧${key.textContent}`;
}

// ---------------------------------------------------------------- drawing

let drawn = 0;
export async function draw() {
  const turn = ++drawn;
  const item = page.paused || page.asks ? null : current();
  page.choices.turn(item && item.sides);
  byId("nothing").hidden = Boolean(item);
  byId("item").hidden = !item;
  drawEditing();
  drawBlind();
  drawNote();
  byId("missing").hidden = true;
  page.choices.mark(page.at >= 0 && item ? item.vote.label : null);
  for (const kind of ["unsure", "skip"]) {
    byId(kind).disabled = !item;
    byId(kind).classList.toggle("chosen", page.at >= 0 && Boolean(item) && item.vote.kind === kind);
  }
  if (!item) {
    setBusy(true);
    drawNothing();
    return;
  }
  setBusy(item.parts.some((part) => part.kind === "image"));
  const ready = show(byId("item"), item);
  const box = byId("item");
  box.dataset.handle = item.handle;
  const scrolls = () => (box.tabIndex = box.scrollHeight > box.clientHeight ? 0 : -1); // what scrolls can be reached by Tab
  scrolls();
  page.watch.restart();
  page.choices.focus();
  const missing = await ready;
  if (turn !== drawn) return;
  scrolls();
  item.missing = missing.length > 0;
  if (item.missing) lacking(item, missing[0]);
  setBusy(false);
  page.watch.restart();
  part("forms").catch(() => {}); // so that it is there when the server is not
}

/** An image that cannot be shown: the owner is told, and nobody labels the item by reflex. */
function lacking(item, why) {
  byId("missing").hidden = Boolean(item.anyway);
  call("/api/unshown", { annotator: page.name, item: item.handle, why: why.slice(0, 500) }).catch(() => {}); // told at the next look
  say("An image of this item is missing.");
}

function anyway() {
  const item = current();
  if (item) item.anyway = true;
  byId("missing").hidden = true;
}

function setBusy(busy) {
  page.busy = busy;
  document.querySelector(".item").setAttribute("aria-busy", String(busy));
  page.choices.enable(Boolean(current()) && !page.paused);
}

/** What stands in the place of an item: that one is coming, or why there is none. */
async function drawNothing() {
  const turn = drawn;
  const which = page.paused ? "paused" : page.asks ? "asks" : page.nothing;
  let [title, text, ...buttons] = ["One moment", page.away ? "The next items come when the server is back." : page.header?.supply.problem || "The next items are being chosen."];
  if (which !== "wait") {
    try {
      [title, text, ...buttons] = (await part("ends")).ending(which);
    } catch {
      setTimeout(() => turn === drawn && draw(), 1000);
    }
    if (turn !== drawn) return;
    say(`${title}. ${text}`);
  }
  byId("nothing-title").textContent = title;
  byId("nothing-text").textContent = text;
  const shown = [...byId("nothing-buttons").children].map((one) => one.id).join();
  if (shown !== buttons.map((one) => one.id).join()) byId("nothing-buttons").replaceChildren(...buttons);
}

function drawEditing() {
  const item = current();
  const editing = page.at >= 0 && item;
  byId("editing").hidden = !editing;
  if (!editing) return;
  byId("editing").textContent = `You said: ${said(item)}. Choose again to change it, → to go on.`;
  say(byId("editing").textContent);
}

export function drawBlind() {
  const item = current();
  byId("blind").textContent = item && item.revealed ? `model predicts: ${item.revealed}` : "prediction hidden";
  byId("blind").classList.toggle("revealed", Boolean(item && item.revealed));
}

function drawNote() {
  const note = !page.asks && current() && current().note;
  byId("note-shown").hidden = !note;
  byId("note-text").textContent = note ? note.text : "";
}

export function drawStrip() {
  page.strip.splice(STRIP);
  byId("strip").hidden = !page.strip.length;
  byId("strip").replaceChildren(...page.strip.map((one) => el("button", { type: "button", title: `Look again: ${one.name}`, dir: "auto", onclick: () => revisit(one) }, one.name)));
}

function drawSaved() {
  const waiting = page.outbox ? page.outbox.entries.length : 0;
  const problem = page.away || (page.outbox && page.outbox.problem);
  if (problem && !page.away) return lost(problem);
  const kept = waiting ? `${waiting === 1 ? "One answer is" : `${waiting} answers are`} kept in this browser and will be sent when it is back.` : "Trying again.";
  if (problem) banner(`${problem} ${kept}`);
  const savedAt = page.header && page.header.saved_at;
  let [state, text] = savedAt ? ["saved", `saved ${clock(savedAt)}`] : ["idle", "nothing to save yet"];
  if (waiting) [state, text] = ["saving", "saving …"];
  if (problem) [state, text] = ["away", waiting ? `not saved yet: ${waiting}` : "no connection"];
  byId("saved").dataset.state = state;
  byId("saved-text").textContent = text;
}

export function drawHeader() {
  const { labels, budget, mine, seconds_per_label: pace, seconds_left: left, supply } = page.header;
  byId("count").textContent = `${labels.toLocaleString()} of ${budget.toLocaleString()} labels`;
  byId("count").title = `${mine} of them by ${page.name}`;
  byId("bar-fill").style.width = `${Math.min(100, (100 * labels) / Math.max(1, budget))}%`;
  byId("bar").setAttribute("aria-valuemax", budget);
  byId("bar").setAttribute("aria-valuenow", labels);
  byId("pace").textContent = pace === null ? "" : `${pace < 10 ? pace.toFixed(1) : Math.round(pace)} s each${left ? ` · about ${duration(left)} left` : ""}`;
  const ready = Math.max(0, page.hand.length - 1) + supply.ready;
  const fit = supply.last_fit_labels === null ? "" : `last fit: ${supply.last_fit_labels} label${supply.last_fit_labels === 1 ? "" : "s"}`;
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
  if (event.repeat || dialogOpen() || page.paused || page.fetching) return;
  const key = keyOf(event);
  if ((event.ctrlKey || event.metaKey) && key === "z" && !(typing(event.target) && event.target.value)) {
    event.preventDefault();
    undo();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.shiftKey && MOVES[key] && byId("item").picture && !(typing(event.target) && event.target.value)) {
    byId("item").picture.move(...MOVES[key]);
    event.preventDefault();
    return;
  }
  if (page.choices.typed) return page.choices.pressed(event, page.single, commands, scrolled);
  if (typing(event.target)) return;
  if (event.target instanceof Element && event.target.matches("input[type=range]") && key.startsWith("Arrow")) return;
  if (scrolled(event, key)) return event.preventDefault();
  if (!page.single && key.length === 1) return;
  const code = page.choices.of(key);
  if (code !== undefined) vote({ kind: "label", label: code });
  else if (commands[key]) commands[key]();
  else return;
  event.preventDefault();
}

/** Long items move by keyboard; whether the key was for that. */
function scrolled(event, key) {
  const box = byId("item");
  if (box.scrollHeight <= box.clientHeight || (key === " " && event.target instanceof Element && event.target.matches("button"))) return false;
  const whole = box.clientHeight * 0.85;
  const by = { ArrowUp: -60, ArrowDown: 60, PageUp: -whole, PageDown: whole, " ": event.shiftKey ? -whole : whole, Home: -box.scrollHeight, End: box.scrollHeight }[key];
  if (by) box.scrollBy({ top: by });
  return Boolean(by);
}

function listen() {
  document.addEventListener("keydown", pressed);
  const buttons = {
    unsure: commands.u, skip, undo, back, note, reveal, instructions: showInstructions, definitions: showDefinitions, keys: showKeys,
    person: changePerson, "echo-undo": undo, "note-edit": note, anyway, "banner-close": () => banner(""),
  };
  for (const [id, pressedButton] of Object.entries(buttons)) byId(id).addEventListener("click", pressedButton);
  document.addEventListener("visibilitychange", () => !document.hidden && refresh());
  window.addEventListener("beforeunload", (event) => page.outbox.entries.length && page.outbox.problem && event.preventDefault());
}

begin();
