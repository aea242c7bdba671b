// Why there is no item to label, and what can be done: fetched when it is first so.

import { call } from "./api.js";
import { el } from "./dom.js";
import { draw, page, refresh, request } from "./label.js";
import { forget } from "./viewer.js";

const SURE_MS = 600; // what is pressed sooner after a question came up was not meant for it

/** [title, text, ...buttons]; which: "others", "stopped", "paused", "asks" or "done" */
export function ending(which) {
  const { goal = null, labels = 0, budget = 0 } = page.header || {};
  const goals = goal ? goal.goals.join("; ") : "";
  const button = (text, id, pressed, kind = "") => el("button", { id, type: "button", class: kind, onclick: pressed }, text);
  const goOn = () => button("Go on", "go-on", () => choose(false));
  const endings = {
    others: () => ["Nothing for you right now", "The remaining items are with other annotators. One that is not labelled comes back after a while; this page will show it."],
    stopped: () => ["Stopped at the goal", `${goal && goal.choice ? `${goal.choice.by} stopped here` : "Stopped"}: ${goals}. Thank you.`, goOn()],
    paused: () => ["Open in another tab", "Labelling goes on there, so that nothing is labelled twice.", button("Continue here", "here", page.here, "primary")],
    asks: () => ["Goal reached", `${goals}. More labels would make it narrower still.`, button("Stop here", "stop-here", () => choose(true), "primary"), goOn()],
    done: () => done(goal, goals, labels, budget),
  };
  return endings[which]();
}

function done(goal, goals, labels, budget) {
  const spent = labels >= budget ? `The budget of ${budget.toLocaleString()} labels is spent` : "There is nothing left to label";
  if (!goal) return ["All done", `${spent}. Thank you.`];
  if (goal.labels !== labels) return ["All done", `${spent}. Whether the goal is reached is being computed.`];
  if (goal.reached) return ["Goal reached", `${goals}. ${spent}. Thank you.`];
  return ["The goal is not reached", `${spent}, but the goal is not reached (${goals}). The owner of the session can raise the budget.`];
}

/** Record whether somebody stops here or goes on. */
async function choose(stop) {
  if (performance.now() - page.asksSince < SURE_MS) return;
  await page.outbox.drained();
  const answer = await request(() => call("/api/choose", { annotator: page.name, stop }));
  if (!answer) return;
  page.asks = false;
  page.header = answer.header;
  if (stop) {
    page.hand.splice(0).forEach(forget);
    page.nothing = "stopped";
  }
  draw();
  await refresh();
}
