import { spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

// Events that pi calls, each with what to run: `argv` or `shell`, and perhaps
// `match`, `timeout` (ms), `env`, `cwd`, `async`.
const HOOKS = {/*hooks*/};

// For commands with the dialect `contract`: its names of tools and their keys, and of events.
const CONTRACT_TOOLS = {/*contract_tools*/};
const CONTRACT_EVENTS = {/*contract_events*/};

// Whole conversations and prompts of the system: too large to send at every event.
const LARGE = ["messages", "payload", "systemPrompt", "systemPromptOptions", "context", "images"];

// An agent that is sent back again and again would never end.
const MAX_CONTINUATIONS = 8;

// A second copy of this extension, the user's beside the project's, is called right
// after the first, with what that one made of the event. It does nothing where another
// copy has an answer of anyhook, and only there: a copy whose program cannot be started
// has none. Marks expire after a second, so that none is taken for a later event.
const ANSWERED = (globalThis[Symbol.for("anyhook.pi.answered")] ??= new Map());
const SELF = {};
const ANSWER_AGE_MS = 1000;

function isAnswered(event) {
  const mark = ANSWERED.get(`${event.type} ${event.toolCallId ?? event.text}`);
  return mark !== undefined && mark.copy !== SELF && Date.now() - mark.time < ANSWER_AGE_MS;
}

function setAnswered(event, text) {
  for (const [key, mark] of ANSWERED) if (Date.now() - mark.time >= ANSWER_AGE_MS) ANSWERED.delete(key);
  if (event.toolCallId === undefined && text === undefined) return; // Equal events of these types repeat.
  ANSWERED.set(`${event.type} ${event.toolCallId ?? text}`, { copy: SELF, time: Date.now() });
}

/*runner*/

/** The payload: the event, and where it happens. */
function payload(entry, event, ctx, state) {
  const { type, toolName, input, text, ...rest } = event;
  const session = ctx?.sessionManager?.getSessionId?.();
  if (entry.dialect === "contract") {
    const tool = CONTRACT_TOOLS[toolName] ?? { name: toolName, keys: {} };
    const call = { tool_name: tool.name, tool_input: renamed(input ?? {}, tool.keys) };
    const other = { tool_name: CONTRACT_EVENTS[type] ?? type, tool_input: { session_id: session, cwd: ctx?.cwd, prompt: text } };
    return JSON.stringify(toolName === undefined ? other : call) + "\n";
  }
  for (const name of LARGE) delete rest[name];
  const sent = { type, toolName, input, text, ...rest, cwd: ctx?.cwd, sessionId: session, hasUI: ctx?.hasUI };
  sent.sessionFile = ctx?.sessionManager?.getSessionFile?.();
  if (type === "agent_before_settle") sent.stopHookActive = state.continuations > 0;
  if (entry.shell && toolName !== undefined) {
    sent.tool_name = toolName;
    sent.tool_input = input ?? {};
  }
  return JSON.stringify(sent);
}

/** Tells the user why something does not happen, where the model does not see it. */
function notify(ctx, words) {
  if (ctx?.hasUI) ctx.ui?.notify?.(words, "warning");
  else console.error(words);
}

/** What pi is to do at an event, from the answers of all commands. */
function reaction(event, { deny, context, prompt }, ctx, state) {
  const words = [deny, context].filter((part) => typeof part === "string").join("\n\n");
  switch (event.type) {
    case "tool_call":
      return deny === undefined ? undefined : { block: true, reason: words };
    case "tool_result":
      if (deny !== undefined) return { content: [{ type: "text", text: words }], isError: true };
      return context === undefined ? undefined : { content: [...(event.content ?? []), { type: "text", text: context }] };
    case "input": {
      if (deny !== undefined) {
        notify(ctx, words);
        return { action: "handled" };
      }
      state.continuations = 0;
      const text = [prompt ?? event.text, context].filter((part) => part !== undefined).join("\n\n");
      return text === event.text ? undefined : { action: "transform", text };
    }
    case "agent_before_settle":
      if (deny === undefined || state.continuations >= MAX_CONTINUATIONS) return undefined;
      state.continuations += 1;
      return { continue: true, entries: [{ type: "custom_message", customType: "anyhook", content: words, display: true }] };
    case "session_before_compact":
      if (deny === undefined) return undefined;
      notify(ctx, words);
      return { cancel: true };
    default:
      return undefined;
  }
}

async function handle(entries, event, ctx, state) {
  const merged = {};
  let isBridgeAnswer = false;
  for (const entry of entries) {
    if (!matches(entry, event.toolName)) continue;
    const isBridge = entry.argv !== undefined;
    if (isBridge && isAnswered(event)) continue;
    const answered = run(entry, payload(entry, event, ctx, state), ctx?.cwd).catch(() => undefined);
    if (entry.async) continue;
    const answer = await answered;
    isBridgeAnswer ||= isBridge && answer !== undefined;
    const { deny, args, context, prompt } = meaning(answer);
    // Changed in place: there is no other way, and the next command sees it.
    if (typeof args === "object" && args !== null && event.input) Object.assign(event.input, args);
    if (typeof prompt === "string") merged.prompt = prompt;
    if (typeof context === "string") merged.context = merged.context === undefined ? context : `${merged.context}\n\n${context}`;
    if (typeof deny === "string") {
      merged.deny = deny;
      break;
    }
  }
  const done = reaction(event, merged, ctx, state);
  if (isBridgeAnswer) setAnswered(event, done?.text ?? event.text);
  return done;
}

export default function (pi) {
  const state = { continuations: 0 };
  for (const [name, entries] of Object.entries(HOOKS)) {
    // pi blocks a call whose handler throws: what fails here must not.
    pi.on(name, (event, ctx) => handle(entries, event, ctx, state).catch(() => undefined));
  }
}
