// A session as a story: prompts, the tools that followed, what hooks said, the end.

import { badge, duration, h, moment, time } from "./dom.js";

const STARTS_TURN = "before_prompt";
const ENDS_CALL = new Set(["after_tool_execute", "tool_use_failure"]);

/** Joins the end of a tool call with its start. Events come oldest first. */
function steps(events) {
  const list = [];
  for (const event of events) {
    const begun = ENDS_CALL.has(event.event)
      && list.findLast((step) => step.event.event === "before_tool_execute" && !step.end && step.event.tool === event.tool && step.event.detail === event.detail);
    if (begun) begun.end = event;
    else list.push({ event });
  }
  return list;
}

/** Splits steps into turns; what comes before the first prompt is a turn without one. */
function turns(list) {
  const made = [];
  for (const step of list) {
    if (made.length === 0 || step.event.event === STARTS_TURN) made.push([]);
    made.at(-1).push(step);
  }
  return made;
}

const words = (name) => name.replaceAll("_", " ");

function step({ event, end }, open) {
  const failed = end?.event === "tool_use_failure";
  const hooks = event.hooks + (end?.hooks || 0);
  const facts = [failed ? "the tool failed" : null, hooks ? `${hooks} ${hooks === 1 ? "hook" : "hooks"}, ${duration(event.duration_ms + (end?.duration_ms || 0))}` : null];
  return h(`button.row.step${event.event === STARTS_TURN ? ".prompt" : ""}`, { type: "button", role: "option", "data-id": event.id, "aria-selected": "false", onclick: () => open(event.id) },
    h("span.time", { title: moment(event.time) }, time(event.time)),
    badge(event),
    h("span.what", null,
      h("b", null, event.event === STARTS_TURN ? "Prompt" : event.tool || words(event.event)),
      event.detail ? h("span.said", null, event.detail) : null,
      event.reason ? h("em", null, event.reason) : null,
      h("small", null, facts.filter(Boolean).join(" · "))));
}

/** The events of a session, oldest first, in turns. */
export function story(events, open) {
  const oldestFirst = [...events].reverse();
  return turns(steps(oldestFirst)).map((turn) =>
    h("div.card.list.turn", { role: "listbox", "aria-label": "One turn" }, turn.map((one) => step(one, open))));
}
