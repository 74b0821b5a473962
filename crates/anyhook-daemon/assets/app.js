// The page: its state, views and keyboard shortcuts.

import { Locked, fetchJson, stream, unlock } from "./api.js";
import * as approvals from "./approvals.js";
import { costs } from "./cost.js";
import { $, count, dayOf, h } from "./dom.js";
import { address, filters, learn, readAddress, writeAddress } from "./filters.js";
import * as views from "./views.js";

const SHOWN_MAX = 1000;
const main = $("#main");
const panel = $("#panel");
const form = $("#filters");

const state = { tab: "", events: [], known: new Set(), waiting: [], next: undefined, live: undefined, paused: false, opened: undefined, request: 0 };

function show(...content) {
  main.replaceChildren(...content.flat(Infinity).filter(Boolean));
}

/** Runs one view's requests, then shows what it returns; a response that arrives too late is dropped. */
async function load(work) {
  const number = ++state.request;
  const isCurrent = () => number === state.request;
  try {
    const content = await work(isCurrent);
    if (isCurrent() && content) show(content);
  } catch (error) {
    if (!isCurrent()) return;
    if (error instanceof Locked) lock();
    else show(views.empty("The daemon does not respond", error.message));
  }
}

function lock() {
  state.live?.stop();
  status("away", "Locked");
  form.hidden = true;
  show(views.locked());
}

// ---- timeline

function timeline() {
  state.live?.stop();
  Object.assign(state, { events: [], known: new Set(), waiting: [], next: undefined });
  // The stream opens before the first request: events between the two arrive twice and are
  // recognised by their id.
  state.live = stream(filters(), {
    open: () => status(state.paused ? "paused" : "live"),
    disconnected: () => status("away", "Reconnecting"),
    locked: lock,
    event: arrive,
  });
  return load(async (isCurrent) => {
    const page = await fetchJson("/events", { ...filters(), limit: 100 });
    if (!isCurrent()) return;
    state.next = page.next;
    page.events.forEach(learn);
    take(page.events);
    draw();
  });
}

function take(events) {
  for (const event of events) {
    if (state.known.has(event.id)) continue;
    state.known.add(event.id);
    state.events.push(event);
  }
  state.events.sort((a, b) => (a.time < b.time ? 1 : a.time > b.time ? -1 : b.seq - a.seq));
  for (const gone of state.events.splice(SHOWN_MAX)) state.known.delete(gone.id);
}

function draw(fresh = new Set()) {
  if (state.tab !== "timeline") return;
  if (state.events.length === 0) {
    const filtered = Object.keys(filters()).length > 0;
    show(filtered ? views.empty("No events match", "Change the filter, or press ", h("kbd", null, "Esc"), " to clear it.")
      : views.empty("No events yet", "Events appear here when an agent calls a hook."));
    return;
  }
  const list = h("div.card.list", { role: "listbox", "aria-label": "Events", id: "timeline" });
  let day;
  for (const event of state.events) {
    if (dayOf(event.time) !== day) {
      day = dayOf(event.time);
      list.append(views.dayLine(event));
    }
    const row = views.row(event, open);
    if (fresh.has(event.id)) row.classList.add("fresh");
    if (event.id === state.opened) row.setAttribute("aria-selected", "true");
    list.append(row);
  }
  if (state.next) list.append(h("button.more", { type: "button", onclick: older }, "Older events"));
  const focused = document.activeElement?.dataset?.id;
  show(state.waiting.length ? h("button.waiting", { type: "button", onclick: resume }, `${count(state.waiting.length)} new`) : null, list);
  if (focused) rowOf(focused)?.focus({ preventScroll: true });
}

let drawing;
const arrived = new Set();

/** Draws the events of a burst together. */
function arrive(event) {
  learn(event);
  // The list must not move while someone reads it.
  if (state.paused || scrollY > 120) {
    state.waiting.push(event);
  } else {
    if (!state.known.has(event.id)) arrived.add(event.id);
    take([event]);
  }
  if (drawing) return;
  drawing = setTimeout(() => {
    drawing = undefined;
    if (state.paused) status("paused");
    else if (arrived.size) $("#announcement").textContent = `${arrived.size} new events`;
    draw(new Set(arrived));
    arrived.clear();
  }, 60);
}

async function older() {
  const number = state.request;
  const page = await fetchJson("/events", { ...filters(), cursor: state.next, limit: 100 });
  if (number !== state.request) return;
  state.next = state.events.length + page.events.length >= SHOWN_MAX ? undefined : page.next;
  take(page.events);
  draw();
}

function resume() {
  state.paused = false;
  take(state.waiting.splice(0));
  status("live");
  scrollTo(0, 0);
  draw();
}

function pause() {
  if (state.paused) return resume();
  state.paused = true;
  status("paused");
}

function status(kind, text) {
  const button = $("#live");
  button.dataset.state = kind;
  button.setAttribute("aria-pressed", String(kind === "live"));
  $("#live-text").textContent = text || (kind === "live" ? "Live" : state.waiting.length ? `Paused, ${count(state.waiting.length)} new` : "Paused");
}

// ---- one event

const rowOf = (id) => [...main.querySelectorAll("[data-id]")].find((row) => row.dataset.id === id);

async function open(id) {
  state.opened = id;
  writeAddress(id);
  for (const row of main.querySelectorAll("[data-id]")) row.setAttribute("aria-selected", String(row.dataset.id === id));
  try {
    const event = await fetchJson(`/events/${encodeURIComponent(id)}`);
    if (state.opened !== id) return;
    panel.replaceChildren(...views.eventPanel(event, close).filter(Boolean));
    panel.hidden = false;
    panel.scrollTop = 0;
  } catch (error) {
    if (error instanceof Locked) lock();
  }
}

function close() {
  const id = state.opened;
  state.opened = undefined;
  panel.hidden = true;
  writeAddress();
  rowOf(id)?.setAttribute("aria-selected", "false");
  rowOf(id)?.focus({ preventScroll: true });
}

// ---- other views

function sessions(shown = { sessions: [] }) {
  return load(async () => {
    const [page, usage] = await Promise.all([fetchJson("/sessions", { ...filters(), cursor: shown.next, limit: 50 }), usageOf(timeAndAgent())]);
    const all = { sessions: [...shown.sessions, ...page.sessions], next: page.next };
    const known = new Map(usage.by_session.map((one) => [`${one.agent} ${one.session}`, one]));
    return views.sessions(all, (one) => known.get(`${one.agent} ${one.session_id}`), () => sessions(all));
  });
}

const session = (id, agent) => load(async () => {
  const [found, usage] = await Promise.all([fetchJson(`/sessions/${encodeURIComponent(id)}`, { agent, limit: 500 }), usageOf({ session: id, agent })]);
  return views.session(found, usage, open);
});

/** Calls of models have no other filters. */
const timeAndAgent = () => ({ agent: filters().agent, since: filters().since });

/** Tokens and cost; a view goes without them if they cannot be read. */
const usageOf = (parameters) => fetchJson("/usage", parameters).catch((error) => {
  if (error instanceof Locked) throw error;
  return { by_session: [] };
});

const cost = () => load(async () => costs(await fetchJson("/usage", timeAndAgent())));
const insights = () => load(async () => views.insights(await fetchJson("/stats", { ...filters(), buckets: 48 })));

const hooks = () => load(async () => {
  const stats = await fetchJson("/stats", { ...filters(), buckets: 1 });
  return views.hooks(stats.by_hook, lastRun);
});

/** The newest event in whose record a hook's name is. */
async function lastRun(hook) {
  const page = await fetchJson("/events", { ...filters(), text: hook.hook, agent: hook.agent, limit: 1 });
  return page.events[0];
}

function route() {
  const { view, args, params } = address();
  const [id, agent] = args;
  const tabs = { timeline, sessions: () => sessions(), hooks, cost, insights, session: () => session(id || "", agent) };
  state.tab = Object.hasOwn(tabs, view) ? view : "timeline";
  readAddress();
  const opened = params.get("open");
  state.opened = opened || undefined;
  panel.hidden = true;
  writeAddress(opened);
  for (const link of document.querySelectorAll("[data-tab]")) {
    if (link.dataset.tab === state.tab || (state.tab === "session" && link.dataset.tab === "sessions")) {
      link.setAttribute("aria-current", "page");
      // On a narrow screen the tabs scroll.
      link.scrollIntoView({ block: "nearest", inline: "nearest" });
    } else link.removeAttribute("aria-current");
  }
  form.hidden = state.tab === "session";
  form.classList.toggle("cost-filters", state.tab === "cost");
  $("#live").hidden = state.tab !== "timeline";
  tabs[state.tab]();
  if (opened) open(opened);
}

// ---- filters

let typing;
form.addEventListener("input", (event) => {
  clearTimeout(typing);
  typing = setTimeout(() => {
    writeAddress();
    route();
  }, event.target.name === "text" ? 250 : 0);
});
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("reset", () => setTimeout(() => form.dispatchEvent(new Event("input"))));

// ---- keys

function move(by) {
  const rows = [...main.querySelectorAll(".row")];
  if (rows.length === 0) return;
  const current = rows.findIndex((row) => row === document.activeElement || row.dataset.id === state.opened);
  const row = rows[Math.max(0, Math.min(rows.length - 1, current + by))];
  row.focus();
  if (state.opened) open(row.dataset.id);
}

function theme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("anyhook.theme", root.dataset.theme);
}

function decide(value) {
  const chosen = filters().decision === value ? "" : value;
  for (const radio of form.elements.decision) radio.checked = radio.value === chosen;
  form.dispatchEvent(new Event("input"));
}

const visit = (tab) => document.querySelector(`[data-tab=${tab}]`).click();
const help = () => ($("#keys").open ? $("#keys").close() : $("#keys").showModal());
const actions = {
  j: () => move(1), ArrowDown: () => move(1), k: () => move(-1), ArrowUp: () => move(-1),
  "/": () => form.elements.text.focus(), d: () => decide("deny"), p: pause, t: theme, "?": help,
  1: () => visit("timeline"), 2: () => visit("sessions"), 3: () => visit("hooks"), 4: () => visit("insights"), 5: () => visit("cost"),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typingIn = event.target.matches?.("input[type=search], select");
  if (event.key === "Escape" && !$("#keys").open) {
    if (!panel.hidden) close();
    else if (typingIn) event.target.blur();
    else form.reset();
    return;
  }
  if (typingIn || $("#keys").open || !Object.hasOwn(actions, event.key)) return;
  event.preventDefault();
  actions[event.key]();
});

$("#live").addEventListener("click", pause);
$("#theme").addEventListener("click", theme);
$("#help").addEventListener("click", help);
$("#keys").append(views.keys());
$("#keys").addEventListener("click", (event) => event.target === $("#keys") && $("#keys").close());
window.addEventListener("hashchange", start);

const chosen = localStorage.getItem("anyhook.theme");
if (chosen) document.documentElement.dataset.theme = chosen;

/** A link may be opened in a page that is already loaded. */
async function start() {
  await unlock();
  route();
  approvals.watch();
}

await start();

/** Says how much of the record is not shown yet, as long as the store catches up. */
async function progress() {
  const line = document.getElementById("progress");
  let behind = false;
  try {
    const { store } = await fetchJson("/healthz");
    const parts = [];
    if (store.failure) parts.push(`Nothing is stored now, the journal keeps it: ${store.failure}`);
    if (store.behind_bytes > 16e6) {
      const done = 100 * (1 - store.behind_bytes / store.catch_up_bytes);
      parts.push(`Catching up with the journal: ${Math.floor(done)} %, ${Math.ceil(store.behind_bytes / 1e6)} MB left`);
    }
    if (store.upgrade) {
      const { done, left } = store.upgrade;
      parts.push(`Moving events to this version's layout: ${Math.floor((100 * done) / (done + left))} %`);
    }
    behind = parts.length > 0;
    line.textContent = parts.join(" · ");
  } catch {
    // The stream's state tells that the daemon is away.
  }
  line.hidden = !behind;
  setTimeout(progress, behind ? 2000 : 30000);
}
progress();

fetchJson("/stats", { buckets: 1 }).then((stats) => {
  for (const one of stats.by_agent) learn({ agent: one.agent });
  for (const one of stats.by_event) learn({ event: one.name });
}).catch(() => {});
