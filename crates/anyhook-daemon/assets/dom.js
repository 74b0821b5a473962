// Creates elements without parsing text as markup: the content of an event stays text.

/** `h("p.note", {title: "x"}, "text", child)`; `on…` attributes are listeners. */
export function h(name, attributes, ...children) {
  const [tag, ...classes] = name.split(".");
  return fill(document.createElement(tag || "div"), classes, attributes, children);
}

/** The same for SVG. */
export function s(name, attributes, ...children) {
  const [tag, ...classes] = name.split(".");
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), classes, attributes, children);
}

function fill(element, classes, attributes, children) {
  for (const one of classes) element.classList.add(one);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false));
  return element;
}

export const $ = (selector) => document.querySelector(selector);

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const day = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long", year: "numeric" });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const number = new Intl.NumberFormat();

const date = (text) => {
  const made = new Date(text);
  return Number.isNaN(made.getTime()) ? new Date(0) : made;
};
export const time = (text) => clock.format(date(text));
export const dayOf = (text) => day.format(date(text));
export const moment = (text) => full.format(date(text));
export const count = (value) => number.format(value);

/** `0.4 ms`, `12 ms`, `1.3 s`, `2 m 5 s`. */
export function duration(ms) {
  if (!(ms > 0)) return "–";
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60000)} m ${Math.round((ms % 60000) / 1000)} s`;
}

/** `just now`, `5 min ago`, `3 h ago`, then the date. */
export function ago(text) {
  const seconds = (Date.now() - date(text)) / 1000;
  if (seconds < 60) return "just now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return moment(text);
}

/** What was decided about an event, or that anyhook or a hook failed and nothing was blocked. */
export function badge(event) {
  const words = { deny: "Denied", ask: "Asked", allow: "Allowed", failed: "Failed" };
  const blocks = event.decision === "deny" || event.decision === "ask";
  const failed = event.kind === "failure" || (event.failed > 0 && !blocks);
  const kind = failed ? "failed" : event.decision || "";
  const known = Object.hasOwn(words, kind);
  return h(`span.badge.${known ? kind : "none"}`, null, known ? words[kind] : "–");
}

/** The last part of a folder's path. */
export const folderName = (path) => (path || "").split(/[\\/]/).filter(Boolean).at(-1) || "";
