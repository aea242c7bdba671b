// Change only what changed: whoever selects text, or has the focus in it, keeps both while the page is renewed.

/** Make `target` hold the given children, by changing what is there as little as possible. */
export function renew(target, ...children) {
  const fresh = target.cloneNode(false);
  fresh.append(...children.filter((child) => child !== null && child !== undefined));
  renewChildren(target, fresh);
}

/** An element from text that the server made (a chart). */
export function drawn(text) {
  return document.importNode(new DOMParser().parseFromString(text, "image/svg+xml").documentElement, true);
}

function renewChildren(old, fresh) {
  const wanted = [...fresh.childNodes];
  wanted.forEach((node, at) => {
    const there = old.childNodes[at];
    if (!there) old.append(node);
    else if (there.nodeType !== node.nodeType || there.nodeName !== node.nodeName) there.replaceWith(node);
    else renewNode(there, node);
  });
  while (old.childNodes.length > wanted.length) old.lastChild.remove();
}

function renewNode(old, fresh) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  for (const { name, value } of [...fresh.attributes]) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  renewChildren(old, fresh);
}
