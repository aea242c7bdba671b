// What is written about an item: why it is skipped, a note. Fetched after the first item.

import { ask } from "./dialog.js";
import { byId, el } from "./dom.js";
import { current, page, vote } from "./label.js";

const REASONS = ["unreadable", "no class fits", "damaged or empty", "several classes"];

/** Skip an item, with a reason. */
export async function skip(item) {
  const input = el("input", { type: "text", maxlength: 2000, "aria-label": "Reason", placeholder: "Reason" });
  const pick = (reason) => el("button", { type: "button", onclick: () => submitted(reason) }, reason); // no submit button: Enter would press the first one
  const submitted = (reason) => {
    input.value = reason;
    byId("dialog-form").requestSubmit();
  };
  const body = [el("div", { class: "reasons" }, ...REASONS.map(pick)), input];
  const reason = await ask({ title: "Skip: why can it not be labelled?", body, ok: "Skip", focus: input, read: () => ({ text: input.value.trim() }) });
  if (reason && item === current()) vote({ kind: "skip", reason: reason.text || "no reason given" });
}

/** Write or edit the note on an item; it is sent, and shown when the server has it. */
export async function note(item) {
  const before = item.note;
  const text = el("textarea", { maxlength: 5000, "aria-label": "Note" }, before ? before.text : "");
  text.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault(); // or it would press the button that gets the focus back
    byId("dialog-form").requestSubmit();
  });
  const hint = `Ctrl+Enter saves${before ? "; an empty one takes the note back" : ""}. The owner of the session sees notes, and they stand in the report; other annotators do not see them.`;
  const body = [text, el("p", { class: "hint" }, hint)];
  const written = await ask({ title: before ? "Edit the note" : "A note on this item", body, ok: "Save", focus: text, read: () => ({ text: text.value.trim() }) });
  if (!written || (!written.text && !before)) return;
  page.outbox.push("/api/note", { annotator: page.name, item: item.handle, text: written.text, revises: before ? before.seq : null });
}
