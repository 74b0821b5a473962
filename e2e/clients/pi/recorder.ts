// Hands every event to the recorder. The recorder may answer with `{"return": value}`, or
// `{"set": {"input.command": value}}` to change fields of the event.
import { spawnSync } from "node:child_process";

const EVENTS = ["session_start", "session_shutdown", "input", "before_agent_start", "agent_end", "tool_call", "tool_result"];

export default function (pi: any) {
  for (const name of EVENTS) {
    pi.on(name, async (event: any) => {
      const done = spawnSync("@hook_program@", ["@run@", name], { input: JSON.stringify(event), encoding: "utf8" });
      if (!done.stdout) return;
      const answer = JSON.parse(done.stdout);
      for (const [path, value] of Object.entries(answer.set ?? {})) {
        const keys = path.split(".");
        const last = keys.pop()!;
        keys.reduce((object, key) => object[key], event)[last] = value;
      }
      return answer.return;
    });
  }
}
