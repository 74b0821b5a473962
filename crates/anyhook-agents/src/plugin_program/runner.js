/** A bare name is looked for where `anyhook install` keeps the program, then on PATH. */
function program(name) {
  if (name.includes("/") || name.includes("\\")) return name;
  const isWindows = process.platform === "win32";
  const base = isWindows ? (process.env.LOCALAPPDATA ?? "") : join(homedir(), ".local/share");
  const kept = join(base, "anyhook/bin", isWindows ? `${name}.exe` : name);
  try {
    accessSync(kept, constants.X_OK);
    return kept;
  } catch {
    return name;
  }
}

/** One command's answer; nothing when it failed, so that the agent goes on. Exit 2 denies. */
function run(entry, text, directory) {
  return new Promise((resolve) => {
    const options = {
      cwd: entry.cwd ?? directory,
      env: { ...process.env, ...entry.env },
      stdio: "pipe",
      windowsHide: true,
      detached: process.platform !== "win32", // A group of its own, to end it as a whole.
    };
    const child = entry.argv
      ? spawn(program(entry.argv[0]), entry.argv.slice(1), options)
      : spawn(entry.shell[process.platform] ?? entry.shell.any, { ...options, shell: true });
    const timer = entry.timeout && setTimeout(() => (kill(child), finish()), entry.timeout);
    let out = "";
    let errors = "";
    child.stdout.setEncoding("utf8").on("data", (part) => (out += part));
    child.stderr.setEncoding("utf8").on("data", (part) => (errors += part));
    child.stdin.on("error", () => {}); // A hook need not read its input.
    child.on("error", () => finish());
    child.on("close", (code) => finish(code));
    child.stdin.end(text);

    function finish(code) {
      clearTimeout(timer);
      resolve(decision(code, out, errors));
    }
  });
}

function decision(code, out, errors) {
  if (code === 2) return { deny: errors.trim() || "A hook denied this and gave no reason." };
  try {
    return code === 0 ? JSON.parse(out.trim() || "{}") : undefined;
  } catch {
    return undefined;
  }
}

function kill(child) {
  try {
    process.kill(process.platform === "win32" ? child.pid : -child.pid, "SIGKILL");
  } catch {
    child.kill("SIGKILL");
  }
}

function matches(entry, tool) {
  if (!entry.match || tool === undefined) return true;
  try {
    return new RegExp(entry.match).test(tool);
  } catch {
    return true; // Better one call too many than an unguarded tool.
  }
}

/** An object with other keys, also inside its lists. */
function renamed(value, keys) {
  if (Array.isArray(value)) return value.map((item) => renamed(item, keys));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [keys[key] ?? key, renamed(inner, keys)]));
}

/** An answer in the words of this plugin, from whichever form a command uses. */
function meaning(answer) {
  if (typeof answer !== "object" || answer === null) return {};
  const nested = answer.hookSpecificOutput ?? {};
  const verdict = nested.permissionDecision ?? answer.permissionDecision ?? answer.decision;
  const reason = nested.permissionDecisionReason ?? answer.permissionDecisionReason ?? answer.reason;
  const denied = verdict === "deny" || verdict === "block" || verdict === "ask";
  return {
    deny: answer.deny ?? (denied ? (reason ?? "A hook denied this and gave no reason.") : undefined),
    args: answer.args ?? answer.updated_input ?? answer.modify_args ?? nested.updatedInput,
    context: answer.context ?? nested.additionalContext ?? answer.additionalContext,
    prompt: answer.prompt,
  };
}
