// What the server has to answer at once: votes taken back or looked at again, the prediction revealed, another name. Fetched when it is first wanted.

import { call } from "./api.js";
import { ask, prose } from "./dialog.js";
import { say } from "./dom.js";
import { current, draw, drawBlind, drawHeader, drawStrip, echo, history, introduce, leavePast, own, page, refresh, request } from "./label.js";
import { forget } from "./viewer.js";

export async function undo() {
  const seq = page.header && page.header.last_seq;
  if (!seq) return say("Nothing to undo.");
  const answer = await request(() => call("/api/undo", { annotator: page.name, seq }));
  if (!answer) return;
  page.header = answer.header;
  page.saidAt = -Infinity;
  echo("");
  leavePast();
  page.asks = false;
  const undone = answer.undone;
  if (undone) page.strip = page.strip.filter((one) => one.handle !== undone.handle);
  drawStrip();
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

export async function back() {
  if (page.at + 1 >= page.past.length) {
    const before = page.past.length ? `&before=${page.past.at(-1).vote.seq}` : "";
    const answer = await request(() => own(`limit=1${before}`));
    if (!answer) return;
    if (!answer.votes.length) return say("That was the first one.");
    page.past.push(...answer.votes);
  }
  page.at += 1;
  draw();
}

export async function revisit(one) {
  const answer = one.seq && (await request(() => own(`limit=1&before=${one.seq + 1}`)));
  if (!answer || !answer.votes.length) return;
  leavePast();
  page.past = answer.votes;
  page.at = 0;
  draw();
}

export async function reveal() {
  const item = current();
  if (!item || !page.setup.reveal || item.revealed) return;
  const body = prose("A label given after a look at the prediction is not an independent one. The look is written down and appears in the report.");
  if (!(await ask({ title: "Show what the model predicts?", body, ok: "Show it" }))) return;
  const answer = await request(() => call("/api/reveal", { annotator: page.name, item: item.handle }));
  if (!answer) return;
  item.revealed = answer.revealed;
  drawBlind();
  say(`The model predicts ${item.revealed}`);
}

export async function changePerson() {
  const before = page.name;
  await introduce("");
  if (page.name === before) return;
  page.hand.splice(0).forEach(forget);
  leavePast();
  echo("");
  page.nothing = "wait";
  draw();
  await refresh();
  history();
}
