// One function per view: turns the daemon's responses into elements.

import { latency, overTime } from "./charts.js";
import { cost, sessionUsage } from "./cost.js";
import { ago, badge, count, dayOf, duration, folderName, h, moment, time } from "./dom.js";
import { story } from "./story.js";

const words = (name) => name.replaceAll("_", " ");
export const link = (kind, ...parts) => ["#", kind, ...parts.map(encodeURIComponent)].join("/");

export function empty(title, ...text) {
  return h("div.empty.card", null, h("h2", null, title), h("p", null, ...text));
}

export function locked() {
  return empty("This page is locked", "Run ", h("code", null, "anyhook serve --open"), " on the daemon's machine: it opens the page of the running daemon with a new link. Each link works once.");
}

export function row(event, open) {
  const denied = event.decision === "deny" && event.reason;
  return h("button.row", { type: "button", role: "option", "data-id": event.id, "aria-selected": "false", onclick: () => open(event.id) },
    h("span.time", { title: moment(event.time) }, time(event.time)),
    badge(event),
    h("span.agent", null, h("span.cut", null, event.agent), h("small.cut", { title: event.cwd || "" }, [event.machine, event.project_id || folderName(event.cwd)].filter(Boolean).join(" · "))),
    h("span.what", null, h("b", null, event.tool || words(event.event)), event.tool ? h("small", null, words(event.event)) : null),
    h("span.detail", { title: event.detail || "" }, denied ? h("em", null, event.reason) : null, denied && event.detail ? "  " : null, event.detail || ""),
    h("span.num", null, duration(event.duration_ms)));
}

export const dayLine = (event) => h("div.day", { "data-day": dayOf(event.time) }, dayOf(event.time));

const section = (title, ...content) => (content.flat(Infinity).some(Boolean) ? [h("h3", null, title), content] : []);
const json = (value) => h("pre", { tabindex: 0 }, typeof value === "string" ? value : JSON.stringify(value, null, 2));
const hasAny = (value) => value && typeof value === "object" && Object.keys(value).length > 0;

/** The answer's standard output, formatted if it is JSON. */
function sentAnswer(answer) {
  if (!answer) return null;
  let out = answer.stdout;
  try {
    out = JSON.parse(answer.stdout);
  } catch {
    // Plain text.
  }
  return [
    h("p", null, `Exit code ${answer.exit ?? 0}`),
    answer.stdout ? json(out) : null,
    answer.stderr ? h("div.quote", null, answer.stderr) : null,
    !answer.stdout && !answer.stderr ? h("div.quote", null, "Nothing: the agent continued as without hooks.") : null,
  ];
}

function facts(pairs) {
  return h("dl.facts", null, pairs.filter(([, value]) => value).map(([name, value]) => [h("dt", null, name), h("dd", null, value)]));
}

function run(one) {
  const kind = { deny: "deny", ask: "ask", allow: "allow", error: "deny", timeout: "deny", warn: "ask", refused: "ask" }[one.outcome];
  return h("div.run", null,
    h("b.cut", null, one.hook),
    h(`span.badge.${kind || "none"}`, null, words(one.outcome)),
    h("span.num", null, duration(one.duration_ms)),
    one.message ? h("small", null, one.message) : null,
    h("small.where", null, one.manifest, one.exit === undefined || one.exit === null ? "" : ` · exit ${one.exit}`));
}

export function eventPanel(event, close) {
  const record = event.record || {};
  const inner = record.event || {};
  const data = inner.data || {};
  const { tool_input: input, ...rest } = data;
  const response = record.response || {};
  const why = response.reason || event.reason;
  return [
    h("header", null,
      h("div", null, h("h2", null, event.tool || words(event.event)), badge(event)),
      h("button.plain", { type: "button", onclick: close, "aria-label": "Close", title: "Close (Esc)" }, "✕")),
    facts([
      ["Time", moment(event.time)],
      ["Agent", event.agent],
      ["Event", `${event.event} · ${event.type}${event.native_event ? ` · ${event.native_event}` : ""}`],
      ["Session", event.session_id && h("a", { href: link("session", event.session_id, event.agent) }, event.session_id)],
      ["Folder", event.cwd],
      ["Machine", event.machine],
      ["Project", event.project_id],
      ["Duration", duration(event.duration_ms)],
    ]),
    section("Why", why ? h(`div.quote.${event.decision || "none"}`, null, why) : null,
      response.context ? [h("p", null, "Context for the model"), h("div.quote", null, response.context)] : null,
      response.system_message ? [h("p", null, "Message to the user"), h("div.quote", null, response.system_message)] : null,
      hasAny(response.updated_input) ? [h("p", null, "Rewritten to"), json(response.updated_input)] : null),
    section("Hooks that ran", (record.hooks || []).map(run)),
    section("Answer to the agent", sentAnswer(record.answer)),
    section("Not supported by the agent", (record.lost || []).map((loss) => h("div.quote.ask", null, `${loss.field}: ${loss.message}`))),
    section("Warnings", (record.warnings || []).map((warning) => h("div.quote.ask", null, warning))),
    section("Input", hasAny(input) ? json(input) : null),
    section("Data", hasAny(rest) ? json(rest) : null),
    h("h3", null, "Record"),
    h("details", null, h("summary", null, "Full journal line"), json(record)),
  ].flat(Infinity);
}

export const cell = (value) => h("td.num", null, value);
export const table = (names, rows) => h("table", null,
  h("thead", null, h("tr", null, names.map((name, n) => h(n === 0 || ["Agent", "Folder", "Machine", "Model"].includes(name) ? "th" : "th.num", null, name)))),
  h("tbody", null, rows));

/** `usage` finds what the models of a session used. */
export function sessions(page, usage, more) {
  if (page.sessions.length === 0) return empty("No sessions", "No session matches the filter.");
  return h("div.card.padded", null,
    table(["Session", "Agent", "Folder", "Machine", "Last event", "Events", "Tools", "Denied", "Cost"], page.sessions.map((one) => {
      const href = link("session", one.session_id, one.agent);
      return h("tr.open", { onclick: () => { location.hash = href; } },
        h("td.line", { title: one.session_id }, h("a", { href }, one.session_id)), h("td.line", null, one.agent), h("td.line", { title: one.cwd || "" }, folderName(one.cwd)), h("td.line", null, one.machine || ""),
        cell(ago(one.last)), cell(count(one.events)), cell(count(one.tools)), cell(one.denials ? h("span.badge.deny", null, count(one.denials)) : "–"), cell(usage(one) ? cost(usage(one)) : "–"));
    })),
    page.next ? h("button.more", { type: "button", onclick: more }, "Older sessions") : null);
}

export function session({ session: one, events }, usage, open) {
  return [
    h("div.card.block", null, h("h2", null, one.session_id),
      h("p", null, [one.agent, one.cwd, one.machine].filter(Boolean).join(" · ")),
      facts([["Started", moment(one.first)], ["Last event", moment(one.last)], ["Events", count(one.events)],
        ["Denied", count(one.denials)], ["Models", sessionUsage(usage)], ["Tools", one.by_tool.map((tool) => `${tool.name} ${count(tool.count)}`).join(", ")]])),
    story(events, open),
  ];
}

export function insights(stats) {
  if (stats.events === 0) return empty("No data yet", "No event matches in this period.");
  const tile = (name, value, kind = "plain-tile") => h(`div.tile.card.${kind}`, null, h("small", null, name), h("b", null, count(value)));
  return [
    h("div.tiles", null, tile("Events", stats.events), tile("Denied", stats.denials, "deny"), tile("Asked", stats.asks),
      tile("Sessions", stats.sessions), tile("anyhook failures", stats.failures)),
    h("div.pair", null,
      h("section.card.block", null, h("h2", null, "Denials over time"), h("p", null, "Denied, of all events"), overTime(stats.over_time)),
      h("section.card.block", null, h("h2", null, "Hook latency"), h("p", null, "The slowest hooks, by p95"), latency(stats.by_hook))),
    h("section.card.block", null, h("h2", null, "Agents"), table(["Agent", "Events", "Denied", "Asked", "Failures", "p50", "p95", "p99"],
      stats.by_agent.map((one) => h("tr", null, h("td.line", null, one.agent), [one.events, one.denials, one.asks, one.failures].map((value) => cell(count(value))),
        ["p50", "p95", "p99"].map((rank) => cell(duration(one.duration_ms[rank]))))))),
  ];
}

/** One row per hook and agent. `lastRun` finds the newest event of a hook. */
export function hooks(list, lastRun) {
  if (list.length === 0) return empty("No hooks", "No hook ran in this period.");
  return h("div.card.padded", null, table(["Hook", "Agent", "Runs", "Denied", "Failed", "p50", "p95", "Slowest", "Last"], list.map((one) => {
    const last = h("td.num", null, "…");
    lastRun(one).then(
      (event) => last.replaceChildren(event ? h("a", { href: `${link("timeline")}?${new URLSearchParams({ text: one.hook, agent: one.agent })}` }, ago(event.time)) : "–"),
      () => last.replaceChildren("–"));
    return h("tr", { title: one.manifest }, h("td.line", null, one.hook), h("td.line", null, one.agent), cell(count(one.runs)),
      cell(one.denials ? h("span.badge.deny", null, count(one.denials)) : "–"), cell(one.troubles ? h("span.badge.failed", null, count(one.troubles)) : "–"),
      ["p50", "p95", "max"].map((rank) => cell(duration(one.duration_ms[rank]))), last);
  })));
}

export function keys() {
  const lines = [["j / k, ↓ / ↑", "next, previous event"], ["Enter", "open event"], ["Esc", "close"], ["/", "search"], ["d", "denied only, or all"],
    ["p", "pause or resume"], ["1 … 5", "timeline, sessions, hooks, insights, cost"], ["t", "light or dark"], ["?", "keyboard shortcuts"]];
  return h("table", null, h("tbody", null, lines.map(([key, text]) => h("tr", null, h("td", null, h("kbd", null, key)), h("td", null, text)))));
}
