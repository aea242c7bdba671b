// Small pieces of the page. Whatever comes from data is put in as text, never as HTML.

export const byId = (id) => document.getElementById(id);

/** A new element: attributes by name, on* as listeners, children as elements or texts. */
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, String(value));
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** The stylesheet that belongs to a script; resolves when it is there or cannot be had. */
export function sheet(name, script) {
  return new Promise((done) => {
    document.head.append(el("link", { rel: "stylesheet", href: new URL(`./${name}.css`, script).href, onload: done, onerror: done }));
  });
}

/** Say something to people who listen to the page instead of looking at it. */
export function say(text) {
  byId("say").textContent = text;
}

export function banner(text, closable = false) {
  byId("banner").hidden = !text;
  byId("banner-text").textContent = text || "";
  const close = byId("banner-close");
  if (close) close.hidden = !closable;
}

export function clock(iso) {
  return iso ? new Date(iso).toLocaleTimeString([], { hour12: false }) : "";
}

export function duration(seconds) {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

/** The key of a keyboard event; digits by their place, so that layouts with shifted digits work too. */
export function keyOf(event) {
  const digit = /^(?:Digit|Numpad)(\d)$/.exec(event.code || "");
  if (digit && !event.shiftKey) return digit[1];
  return event.key.length === 1 ? event.key.toLowerCase() : event.key;
}

/** Whether keys go into a field rather than to the page. */
export function typing(target) {
  return target instanceof Element && target.matches("textarea, select, input:not([type=range])");
}
