// NAME: denies a forced push. Change `check` to your rule, then run the test:
//   node --test NAME.test.ts
//
// The event comes as JSON on stdin, the answer goes to stdout as JSON; no answer means
// no objection. Print debug text with console.error. An exception is a failure of the
// hook: `on_failure: block` in the manifest denies the call then.

interface Event {
  event: string;
  data?: { tool_name?: string; tool_input?: { command?: unknown } };
}

/** The reason to deny, or nothing. */
function check(event: Event): string | undefined {
  const command = event.data?.tool_input?.command;
  if (typeof command !== "string") return undefined;
  const words = command.split(/\s+/);
  const isForced = words.includes("--force") || words.includes("-f");
  return words.includes("push") && isForced
    ? "NAME: a forced push can remove the work of others"
    : undefined;
}

let text = "";
process.stdin.setEncoding("utf8");
for await (const part of process.stdin) text += part;
const reason = check(JSON.parse(text) as Event);
if (reason !== undefined) {
  process.stdout.write(JSON.stringify({ decision: "deny", reason }));
}
