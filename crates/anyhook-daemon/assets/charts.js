// Charts, drawn by hand as SVG.

import { count, duration, h, moment, s } from "./dom.js";

/** Events in the background, denials as bars in front, on one scale. */
export function overTime({ seconds, buckets }) {
  const [width, height, left, bottom] = [560, 190, 34, 20];
  if (buckets.length === 0) return h("p", null, "No events in this period.");
  const first = Date.parse(buckets[0].start);
  const last = Date.parse(buckets.at(-1).start);
  const slots = Math.max(12, Math.round((last - first) / 1000 / seconds) + 1);
  const step = (width - left) / slots;
  const most = Math.max(...buckets.map((bucket) => bucket.events), 4);
  const tall = height - bottom - 8;
  const bar = (kind, bucket, size, inset) => {
    const slot = Math.round((Date.parse(bucket.start) - first) / 1000 / seconds);
    const high = size > 0 ? Math.max(2, size * tall) : 0;
    return s(`rect.${kind}`, {
      x: left + slot * step + inset * step, y: height - bottom - high,
      width: Math.max(1.2, step * (1 - 2 * inset)), height: high, rx: Math.min(3, step / 4),
    }, s("title", null, `${moment(bucket.start)}: ${count(bucket.events)} events, ${count(bucket.denials)} denied`));
  };
  const line = (part) => {
    const y = height - bottom - part * tall;
    return [s("line.grid", { x1: left, x2: width, y1: y, y2: y }), s("text", { x: left - 8, y: y + 4, "text-anchor": "end" }, count(Math.round(most * part)))];
  };
  const label = (text, x, anchor) => s("text", { x, y: height - 4, "text-anchor": anchor }, text);
  return h("div", null,
    s("svg.chart", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Events and denials over time", id: "denials" },
      line(0), line(0.5), line(1),
      buckets.map((bucket) => bar("all", bucket, bucket.events / most, 0.06)),
      buckets.map((bucket) => bar("denied", bucket, bucket.denials / most, 0.24)),
      label(moment(buckets[0].start), left, "start"), slots > 12 ? label(moment(buckets.at(-1).start), width, "end") : null),
    h("div.legend", null,
      h("span", null, h("i.denied"), "denied"),
      h("span", null, h("i.all"), "all events")));
}

const MAX_DAYS = 60;
/** The text of a chart that is as wide as the page shrinks with it. */
const isNarrow = () => innerWidth < 700;

/** Cost of each day, with the days on which nothing was used. */
export function byDay(days) {
  const [width, height, left, bottom] = [isNarrow() ? 340 : 1120, 190, 46, 20];
  const day = 86400000;
  const last = Date.parse(days.at(-1).date);
  const first = Math.max(Date.parse(days[0].date), last - (MAX_DAYS - 1) * day);
  const slots = Math.max(14, Math.round((last - first) / day) + 1);
  const step = (width - left) / slots;
  const most = Math.max(...days.map((one) => one.cost_usd || 0), 0.01);
  const tall = height - bottom - 8;
  const bar = (one) => {
    const slot = Math.round((Date.parse(one.date) - first) / day);
    if (slot < 0) return null;
    const high = one.cost_usd > 0 ? Math.max(2, one.cost_usd / most * tall) : 0;
    return s("rect.cost", { x: left + (slot + 0.15) * step, y: height - bottom - high, width: step * 0.7, height: high, rx: Math.min(3, step / 4) },
      s("title", null, `${one.date}: $${(one.cost_usd || 0).toFixed(2)}, ${count(one.calls)} calls`));
  };
  const line = (part) => {
    const y = height - bottom - part * tall;
    return [s("line.grid", { x1: left, x2: width, y1: y, y2: y }), s("text", { x: left - 8, y: y + 4, "text-anchor": "end" }, `$${(most * part).toFixed(2)}`)];
  };
  const label = (time) => s("text", { x: left + (Math.round((time - first) / day) + 0.5) * step, y: height - 4, "text-anchor": "middle" }, new Date(time).toISOString().slice(5, 10));
  return s("svg.chart", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Cost by day", id: "cost-by-day" },
    line(0), line(0.5), line(1), days.map(bar), label(first), last > first ? label(last) : null);
}

const short = (text) => (text.length > 32 ? `${text.slice(0, 31)}…` : text);

/** From p50 to p99 of each hook, slowest first, on a logarithmic scale. */
export function latency(hooks) {
  if (hooks.length === 0) return h("p", null, "No hook ran in this period.");
  const shown = hooks.slice(0, 8);
  const [width, rowHeight, left, right] = [560, 34, 8, 20];
  const height = shown.length * rowHeight + 26;
  const values = shown.flatMap((hook) => [hook.duration_ms.p50, hook.duration_ms.p99]).filter((value) => value > 0);
  const low = Math.floor(Math.log10(Math.max(0.1, Math.min(...values, 1))));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values, 1) * 1.05)));
  const x = (value) => left + (width - left - right) * (Math.log10(Math.max(value, 10 ** low)) - low) / (high - low);
  const ticks = Array.from({ length: high - low + 1 }, (_, n) => 10 ** (low + n));
  return h("div", null,
    s("svg.chart", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Hook latency", id: "latency" },
      ticks.map((tick) => [
        s("line.grid", { x1: x(tick), x2: x(tick), y1: 0, y2: height - 18 }),
        s("text", { x: x(tick), y: height - 4, "text-anchor": "middle" }, duration(tick).replace(".0", "")),
      ]),
      shown.map((hook, n) => {
        const { p50, p95, p99 } = hook.duration_ms;
        const y = n * rowHeight + 24;
        return s("g", null,
          s("title", null, `${hook.hook} under ${hook.agent}: p50 ${duration(p50)}, p95 ${duration(p95)}, p99 ${duration(p99)}`),
          s("text.name", { x: left, y: y - 10 }, short(hook.hook), s("tspan", { fill: "var(--faint)" }, `  ${short(hook.agent)}`)),
          s("line.range", { x1: x(p50), x2: x(p99) + 0.01, y1: y, y2: y }),
          s("circle.top", { cx: x(p99), cy: y, r: 4 }),
          s("circle.high", { cx: x(p95), cy: y, r: 4 }),
          s("circle.mid", { cx: x(p50), cy: y, r: 4.5 }));
      })),
    h("div.legend", null, h("span", null, h("i.mid"), "p50"), h("span", null, h("i.high"), "p95"), h("span", null, h("i.top"), "p99")));
}
