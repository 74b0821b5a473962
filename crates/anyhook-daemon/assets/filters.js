// The filter form and the page's address: each view is a link that can be shared.

import { $, h } from "./dom.js";

const form = $("#filters");
const NAMES = ["text", "agent", "event", "machine", "project_id", "decision", "since"];

/** The filters that are set. */
export function filters() {
  return Object.fromEntries([...new FormData(form)].filter(([, value]) => value));
}

/** An address typed by hand may contain an invalid escape. */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The view, its arguments and the parameters of the page's address. */
export function address() {
  const [path, search = ""] = location.hash.slice(1).split("?");
  const [, view = "timeline", ...args] = path.split("/").map(decoded);
  return { view, args, params: new URLSearchParams(search) };
}

/** Sets the form to what the address says. */
export function readAddress() {
  const { params } = address();
  for (const name of NAMES) {
    const value = params.get(name) || "";
    const field = form.elements[name];
    if (field instanceof RadioNodeList) {
      for (const radio of field) radio.checked = radio.value === value;
      continue;
    }
    if (field instanceof HTMLSelectElement) offer(name, value);
    field.value = value;
  }
  $("#clear").hidden = Object.keys(filters()).length === 0;
}

/** Puts the form's filters, and the opened event, into the address and the links of the views. */
export function writeAddress(opened) {
  const set = new URLSearchParams(filters()).toString();
  for (const link of document.querySelectorAll("[data-tab]")) link.href = `#/${link.dataset.tab}${set && `?${set}`}`;
  const params = new URLSearchParams({ ...filters(), ...(opened ? { open: opened } : {}) }).toString();
  const [path] = (location.hash || "#/timeline").split("?");
  const hash = path + (params && `?${params}`);
  if (hash !== location.hash) history.replaceState(null, "", hash);
  $("#clear").hidden = !set;
}

/** Adds a value to a field's choices. A field without choices is not shown. */
function offer(name, value) {
  const select = form.elements[name];
  if (!value || [...select.options].some((option) => option.value === value)) return;
  select.append(h("option", { value }, value.replaceAll("_", " ")));
  select.hidden = false;
}

/** Offers the values of an event as filters. */
export function learn(event) {
  for (const name of ["agent", "event", "machine", "project_id"]) offer(name, event[name]);
}
