// One dialog at a time, by keyboard or pointer; focus returns to where it was.

import { byId, el } from "./dom.js";

export const dialogOpen = () => byId("dialog").open;

/** Open the dialog; resolves with read() on OK, or null when it is closed otherwise. */
export function ask({ title, body, ok = "OK", cancel = "Cancel", read = () => true, focus = null, must = false }) {
  const dialog = byId("dialog");
  if (dialog.open) return Promise.resolve(null);
  byId("dialog-title").textContent = title;
  byId("dialog-body").replaceChildren(...[body].flat());
  byId("dialog-ok").textContent = ok;
  byId("dialog-cancel").textContent = cancel;
  byId("dialog-cancel").hidden = must || !cancel;
  return new Promise((resolve) => {
    let answer = null;
    const submit = (event) => {
      event.preventDefault();
      answer = read();
      if (must && !answer) return;
      dialog.close();
    };
    const stay = (event) => must && event.preventDefault();
    const close = () => dialog.close();
    const done = () => {
      byId("dialog-form").removeEventListener("submit", submit);
      byId("dialog-cancel").removeEventListener("click", close);
      dialog.removeEventListener("cancel", stay);
      dialog.removeEventListener("close", done);
      resolve(answer);
    };
    byId("dialog-form").addEventListener("submit", submit);
    byId("dialog-cancel").addEventListener("click", close);
    dialog.addEventListener("cancel", stay);
    dialog.addEventListener("close", done);
    dialog.showModal();
    (focus || byId("dialog-ok")).focus();
  });
}

export const tell = (title, body) => ask({ title, body, ok: "Close", cancel: "" });

export const prose = (text) => el("p", { class: "prose", dir: "auto" }, text);
