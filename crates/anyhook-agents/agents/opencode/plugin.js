import { spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

// Hooks that OpenCode calls, and events of its bus, each with what to run:
// `argv` or `shell`, and perhaps `match`, `timeout` (ms), `env`, `cwd`, `async`.
const HOOKS = {/*hooks*/};
const BUS = {/*bus*/};

// For commands with the dialect `contract`: its names of tools and their keys, and of events.
const CONTRACT_TOOLS = {/*contract_tools*/};
const CONTRACT_EVENTS = {/*contract_events*/};

// A second copy of this plugin, the user's beside the project's, is handed the same
// objects in the same process. It leaves the call alone where another copy has an answer of
// anyhook, and only there: a copy whose program cannot be started has none.
const ANSWERED = (globalThis[Symbol.for("anyhook.answered")] ??= new WeakMap());
const SELF = {};

function isAnswered(subject, hook) {
  const copy = ANSWERED.get(subject)?.get(hook);
  return copy !== undefined && copy !== SELF;
}

function setAnswered(subject, hook) {
  if (!ANSWERED.has(subject)) ANSWERED.set(subject, new Map());
  ANSWERED.get(subject).set(hook, SELF);
}

/*runner*/

/** A call as the plain contract defines it. */
function contractCall(hook, input, output, directory) {
  if (input?.tool !== undefined) {
    const tool = CONTRACT_TOOLS[input.tool] ?? { name: input.tool, keys: {} };
    const call = { tool_name: tool.name, tool_input: renamed(output?.args ?? input.args ?? {}, tool.keys) };
    return typeof output?.output === "string" ? { ...call, tool_output: output.output } : call;
  }
  const name = hook === "event" ? input?.event?.type : hook;
  const session = input?.sessionID ?? input?.event?.properties?.sessionID;
  const texts = (output?.parts ?? []).filter((part) => part.type === "text").map((part) => part.text);
  const prompt = texts.length > 0 ? texts.join("\n") : undefined;
  return { tool_name: CONTRACT_EVENTS[name] ?? name, tool_input: { session_id: session, cwd: directory, prompt } };
}

/** The payload. A command of the user's also reads a tool call in the plain form. */
function payload(entry, hook, input, output, directory) {
  if (entry.dialect === "contract") return JSON.stringify(contractCall(hook, input, output, directory)) + "\n";
  const sent = { hook, input: input ?? null, output: output ?? null, directory };
  if (entry.shell && input?.tool !== undefined) {
    sent.tool_name = input.tool;
    sent.tool_input = output?.args ?? input.args ?? {};
  }
  try {
    return JSON.stringify(sent);
  } catch {
    return JSON.stringify({ hook, input: null, output: null, directory });
  }
}

/** Adds words for the model to whatever the hook may change. */
function addContext(output, words) {
  const part = output.parts?.findLast?.((part) => part.type === "text");
  if (typeof output.output === "string") output.output += `\n\n${words}`;
  else if (Array.isArray(output.content)) output.content.push({ type: "text", text: words });
  else if (part) part.text += `\n\n${words}`;
  else if (Array.isArray(output.system)) output.system.push(words);
  else if (Array.isArray(output.context)) output.context.push(words);
  else {
    const last = output.messages?.findLast?.((message) => message.info?.role === "user");
    const text = last?.parts?.findLast?.((part) => part.type === "text");
    if (text) text.text += `\n\n${words}`;
  }
}

async function runEntries(entries, hook, input, output, directory) {
  const subject = output ?? input?.event;
  const isObject = typeof subject === "object" && subject !== null;
  for (const entry of entries) {
    if (!matches(entry, input?.tool)) continue;
    const isBridge = isObject && entry.argv !== undefined;
    if (isBridge && isAnswered(subject, hook)) continue;
    const text = payload(entry, hook, input, output, directory);
    const answered = run(entry, text, directory).catch(() => undefined);
    if (entry.async) continue;
    const answer = await answered;
    if (isBridge && answer !== undefined) setAnswered(subject, hook);
    const { deny, args, context } = meaning(answer);
    if (typeof deny === "string") throw new Error(deny);
    // A new object in its place would have no effect.
    if (typeof args === "object" && args !== null && output?.args) Object.assign(output.args, args);
    if (typeof context === "string" && output) addContext(output, context);
  }
}

// OpenCode drops a file that exports anything but functions.
export const anyhook = async ({ directory }) => {
  const hooks = {};
  for (const [name, entries] of Object.entries(HOOKS)) {
    hooks[name] = (input, output) => runEntries(entries, name, input, output, directory);
  }
  if (Object.keys(BUS).length > 0) {
    const own = HOOKS.event ?? [];
    // OpenCode does not wait for these, and an exception here would end it.
    hooks.event = ({ event }) =>
      runEntries([...own, ...(BUS[event.type] ?? [])], "event", { event }, undefined, directory).catch(() => {});
  }
  return hooks;
};
