// What was said and is not yet known to be saved. It is kept in the browser, sent in order, one at a time, and sent
// again until the server answers: sending twice records once.

import { Away, call } from "./api.js";

const PAUSES_MS = [300, 600, 1200, 2500, 5000];

export class Outbox {
  /** hooks: changed(), answered(entry, answer), refused(entry, error), have() -> handles the page holds */
  constructor(key, hooks) {
    this.key = key;
    this.hooks = hooks;
    this.entries = this.stored();
    this.problem = "";
    this.sending = false;
    this.waiters = [];
    this.retry = null;
    window.addEventListener("online", () => this.hurry());
    if (this.entries.length) this.pump();
  }

  stored() {
    try {
      const entries = JSON.parse(localStorage.getItem(this.key) || "[]");
      return Array.isArray(entries) ? entries : [];
    } catch {
      return [];
    }
  }

  keep() {
    try {
      localStorage.setItem(this.key, JSON.stringify(this.entries));
    } catch {
      // A browser without storage: the entries live as long as the tab does.
    }
  }

  push(path, body) {
    this.entries.push({ path, body });
    this.keep();
    this.hooks.changed();
    this.pump();
  }

  items() {
    return this.entries.map((entry) => entry.body.item);
  }

  /** Resolves when everything is saved. */
  drained() {
    return this.entries.length ? new Promise((done) => this.waiters.push(done)) : Promise.resolve();
  }

  hurry() {
    if (this.retry) this.retry();
  }

  async pump() {
    if (this.sending) return;
    this.sending = true;
    for (let tries = 0; this.entries.length; ) {
      const entry = this.entries[0];
      let settle;
      try {
        const answer = await call(entry.path, { ...entry.body, have: this.hooks.have() });
        settle = () => this.hooks.answered(entry, answer);
      } catch (error) {
        if (error instanceof Away) {
          this.problem = error.message;
          this.hooks.changed();
          await this.pause(PAUSES_MS[Math.min(tries++, PAUSES_MS.length - 1)]);
          continue;
        }
        settle = () => this.hooks.refused(entry, error);
      }
      tries = 0;
      this.problem = "";
      this.entries.shift();
      this.keep();
      settle();
      this.hooks.changed();
    }
    this.sending = false;
    this.waiters.splice(0).forEach((done) => done());
  }

  pause(milliseconds) {
    return new Promise((done) => {
      const timer = setTimeout(done, milliseconds);
      this.retry = () => {
        clearTimeout(timer);
        done();
      };
    });
  }
}
