// Tests NAME.ts as anyhook starts it: node --test NAME.test.ts
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const hook = fileURLToPath(new URL("./NAME.ts", import.meta.url));

const cases: [string, string | undefined][] = [
  ["git push --force", "deny"],
  ["git push -f origin main", "deny"],
  ["git push", undefined],
  ["ls", undefined],
];

for (const [command, expected] of cases) {
  test(command, () => {
    const event = {
      event: "before_tool_execute",
      source: "test",
      data: { tool_name: "shell", tool_input: { command } },
    };
    const run = spawnSync(process.execPath, [...process.execArgv.filter((it) => !it.startsWith("--test")), hook], {
      input: JSON.stringify(event),
      encoding: "utf8",
    });
    assert.equal(run.status, 0, run.stderr);
    const answer = run.stdout === "" ? {} : JSON.parse(run.stdout);
    assert.equal(answer.decision, expected);
  });
}
