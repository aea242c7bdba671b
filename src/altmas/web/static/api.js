// Requests to this server and to no other.

const PATIENCE_MS = 10000;
const ROOT = new URL("..", import.meta.url).pathname.replace(/\/$/, ""); // behind a proxy the page may lie below a path

/** The server understood and said no: nothing was recorded, and asking again would not help. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** No answer, or one that the server could not complete: ask again later. */
export class Away extends Error {}

export async function call(path, body) {
  const options = { credentials: "same-origin", signal: AbortSignal.timeout(PATIENCE_MS) };
  if (body !== undefined) {
    Object.assign(options, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  }
  let response;
  try {
    response = await fetch(ROOT + path, options);
  } catch {
    throw new Away("The server does not answer.");
  }
  let answer;
  try {
    answer = await response.json();
  } catch {
    throw new Away("The server’s answer broke off.");
  }
  if (response.ok) return answer;
  const message = answer.error || `The server said ${response.status}.`;
  throw response.status >= 500 ? new Away(message) : new Refused(response.status, message);
}

/** {url, window}: an image as an address inside this page, and which values are shown; rejects with the server's sentence. */
export async function fetchImage(path) {
  let response;
  try {
    response = await fetch(ROOT + path, { credentials: "same-origin" });
  } catch {
    throw new Away("The server does not answer.");
  }
  if (!response.ok) {
    const answer = await response.json().catch(() => ({}));
    throw new Refused(response.status, answer.error || "The image cannot be shown.");
  }
  const [center, width, low, high] = (response.headers.get("x-window") || "").split(",").map(Number);
  return { url: URL.createObjectURL(await response.blob()), window: high === undefined ? null : { center, width, low, high } };
}

const parts = new Map();
let failures = 0;

/** A script that is fetched when it is first needed; Away while it cannot be had. */
export async function part(name) {
  if (!parts.has(name)) {
    const again = failures ? `?${failures}` : ""; // a browser may remember that a file could not be had
    try {
      parts.set(name, await import(`./${name}.js${again}`));
    } catch {
      failures += 1;
      throw new Away("The server does not answer.");
    }
  }
  return parts.get(name);
}
