// Questions that wait for the user: agents that ask while no user is at their terminal.

import { Locked, fetchJson, postJson } from "./api.js";
import { $, h } from "./dom.js";

const POLL_MS = 1500;
const box = $("#approvals");

function question(one) {
  const answer = async (decision) => {
    for (const button of box.querySelectorAll("button")) button.disabled = true;
    try {
      await postJson(`/approvals/${encodeURIComponent(one.id)}`, { decision });
    } catch {
      // Answered elsewhere, or too late: the next look shows what is left.
    }
    await look();
  };
  return h("article.card.question", { "data-approval": one.id },
    h("div", null,
      h("b", null, `${one.agent} asks: ${one.tool || one.event.replaceAll("_", " ")}`),
      one.detail ? h("pre", null, one.detail) : null,
      one.is_rewritten ? h("p", null, "A hook has changed this call; this is what will run.") : null,
      one.reason ? h("p", null, one.reason) : null,
      h("small", null, [one.cwd, `${one.seconds_left} s left`].filter(Boolean).join(" · "))),
    h("div.answers", null,
      h("button.allow", { type: "button", onclick: () => answer("allow") }, "Allow once"),
      h("button.deny", { type: "button", onclick: () => answer("deny") }, "Deny")));
}

async function look() {
  const { approvals } = await fetchJson("/approvals");
  const focused = document.activeElement?.className;
  const id = document.activeElement?.closest?.("[data-approval]")?.dataset.approval;
  box.replaceChildren(...approvals.map(question));
  box.hidden = approvals.length === 0;
  document.title = approvals.length ? `(${approvals.length}) anyhook` : "anyhook";
  // The list is drawn anew every time; a button keeps the focus.
  if (id) [...box.querySelectorAll("[data-approval]")].find((one) => one.dataset.approval === id)?.querySelector(`button.${focused}`)?.focus();
}

let timer;

/** Shows open questions until the page is closed or locked. */
export async function watch() {
  clearTimeout(timer);
  try {
    if (!document.hidden) await look();
  } catch (error) {
    box.hidden = true;
    if (error instanceof Locked) return;
  }
  timer = setTimeout(watch, POLL_MS);
}
