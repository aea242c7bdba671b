// Seconds that somebody looked at an item: time with the page hidden or nobody moving does not count.

const IDLE_MS = 60_000;
const GONE_MS = 300_000;
const TICK_MS = 200;

export class Stopwatch {
  constructor() {
    this.active = 0;
    this.ticked = this.moved = performance.now();
    for (const sign of ["keydown", "pointermove", "pointerdown", "wheel", "scroll"]) {
      window.addEventListener(sign, () => { this.moved = performance.now(); }, { passive: true, capture: true });
    }
    setInterval(() => this.tick(), TICK_MS);
  }

  tick() {
    const now = performance.now();
    if (!document.hidden && now - this.moved < IDLE_MS) this.active += now - this.ticked;
    this.ticked = now;
  }

  restart() {
    this.active = 0;
    this.ticked = performance.now();
  }

  /** Seconds since the last restart, idle ones left out. */
  read() {
    this.tick();
    return Math.round(this.active) / 1000;
  }

  /** Whether somebody has been at the screen within the last minutes. */
  present() {
    return performance.now() - this.moved < GONE_MS;
  }
}
