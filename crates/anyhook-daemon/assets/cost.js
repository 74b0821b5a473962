// The view of tokens and cost.

import { byDay } from "./charts.js";
import { ago, count, h } from "./dom.js";
import { cell, empty, link, table } from "./views.js";

/** US dollars; small amounts are not shown as nothing. */
export function usd(value) {
  if (value > 0 && value < 0.01) return "< $0.01";
  return `$${value.toFixed(2)}`;
}

/** The cost of some calls. A model without a price has no cost, which is not the same as none. */
export function cost(sums) {
  if (sums.cost_usd === undefined) return h("span.faint", { title: "prices.toml in the configuration folder sets prices" }, "no price");
  if (!sums.unpriced_calls) return usd(sums.cost_usd);
  return h("span", { title: `${count(sums.unpriced_calls)} calls of models without a price are not included` }, `${usd(sums.cost_usd)} + ?`);
}

/** The same with words for what is not included: a phone shows no titles. */
function totalCost(usage) {
  if (usage.cost_usd === undefined || !usage.unpriced_calls) return cost(usage);
  return [usd(usage.cost_usd), h("small", null, `and ${count(usage.unpriced_calls)} calls without a price`)];
}

/** What the models of one session used, in one line. */
export function sessionUsage(usage) {
  if (!usage?.calls) return null;
  return h("span", null, `${count(usage.calls)} calls, ${count(usage.input_tokens)} input and ${count(usage.output_tokens)} output tokens, `, cost(usage));
}

const NUMBERS = ["calls", "input_tokens", "cache_read_tokens", "output_tokens"];
const TITLES = ["Calls", "Input", "Cached", "Output"];
const numbers = (sums) => NUMBERS.map((name) => cell(count(sums[name])));

/** Adds the rows of one agent up. */
function byAgent(rows) {
  const sums = new Map();
  for (const row of rows) {
    const sum = sums.get(row.agent) || { agent: row.agent, calls: 0, input_tokens: 0, cache_read_tokens: 0, output_tokens: 0, unpriced_calls: 0 };
    for (const name of NUMBERS) sum[name] += row[name];
    sum.unpriced_calls += row.unpriced_calls || 0;
    if (row.cost_usd !== undefined) sum.cost_usd = (sum.cost_usd || 0) + row.cost_usd;
    sums.set(row.agent, sum);
  }
  return [...sums.values()];
}

export function costs(usage) {
  if (!usage.calls) return empty("No tokens yet", "Tokens appear here once an agent that reports them has called its model.");
  const tile = (name, value, kind = "plain-tile") => h(`div.tile.card.${kind}`, null, h("small", null, name), h("b", null, value));
  const block = (title, ...content) => h("section.card.block", null, h("h2", null, title), ...content);
  // The cost is beside the name, so that a phone shows both.
  const sessionRow = (one) => h("tr", null,
    h("td.line", { title: one.session }, h("a", { href: link("session", one.session, one.agent) }, one.session || "–")),
    cell(cost(one)), h("td.line", null, one.agent), cell(ago(one.last)), numbers(one));
  return [
    h("div.tiles", null, tile("Cost", totalCost(usage)), tile("Model calls", count(usage.calls)), tile("Input tokens", count(usage.input_tokens)),
      tile("of these cached", count(usage.cache_read_tokens)), tile("Output tokens", count(usage.output_tokens))),
    block("Cost by day", h("p", null, `Days of UTC. List prices of ${usage.prices_date}; subscriptions are not considered.`), byDay(usage.by_day)),
    block("Agents", table(["Agent", "Cost", ...TITLES], byAgent(usage.by_model).map((one) => h("tr", null, h("td.line", null, one.agent), cell(cost(one)), numbers(one))))),
    block("Models", table(["Model", "Cost", "Agent", ...TITLES], usage.by_model.map((one) => h("tr", null,
      h("td.line", { title: one.model }, one.model || "unknown"), cell(cost(one)), h("td.line", null, one.agent), numbers(one))))),
    block("Sessions", table(["Session", "Cost", "Agent", "Last call", ...TITLES], usage.by_session.map(sessionRow))),
  ];
}
