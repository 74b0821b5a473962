// Hands every hook call to the recorder as `{"hook": …, "input": …, "output": …}`. The recorder may answer with
// `{"throw": text}`, or `{"set": {"args.command": value}}` to change fields of the output.
import { spawnSync } from "node:child_process"

function call(event, input, output) {
  const done = spawnSync("@hook_program@", ["@run@", event], {
    input: JSON.stringify({ hook: event, input, output }),
    encoding: "utf8",
  })
  if (!done.stdout) return
  const answer = JSON.parse(done.stdout)
  for (const [path, value] of Object.entries(answer.set ?? {})) {
    const keys = path.split(".")
    const last = keys.pop()
    keys.reduce((object, key) => object[key], output)[last] = value
  }
  if (answer.throw) throw new Error(answer.throw)
}

export const Recorder = async () => ({
  "chat.message": async (input, output) => call("chat.message", input, output),
  "tool.execute.before": async (input, output) => call("tool.execute.before", input, output),
  "tool.execute.after": async (input, output) => call("tool.execute.after", input, output),
  event: async ({ event }) => {
    // Updates of message parts come by the hundred and say nothing that the other events do not.
    if (event.type.startsWith("session.")) call("event", { event }, null)
  },
})
