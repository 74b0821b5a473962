/** The daemon's answer, if one runs; otherwise, and when it dies in the middle, the program's. */
async function run(entry, text, directory) {
  const answer = entry.socket && (await askDaemon(entry, text, directory).catch(() => undefined));
  return answer ? decision(answer.code, answer.out, answer.errors) : start(entry, text, directory);
}

// A daemon that stops answering while hooks run counts as dead after `MAX_MISSED_CHECKS` checks.
const CHECK_INTERVAL_MS = 1000;
const CHECK_LIMIT_MS = 250;
const MAX_MISSED_CHECKS = 3;

/** Nothing if there is no daemon, if it is not this user's, or if it gives no complete answer. */
async function askDaemon(entry, text, directory) {
  const { lstatSync } = await import("node:fs");
  const found = lstatSync(entry.socket);
  if (!found.isSocket() || found.uid !== process.getuid() || (found.mode & 0o077) !== 0) return undefined;
  const headers = [
    `x-anyhook-cwd: ${encodeURIComponent(directory ?? process.cwd())}`,
    `x-anyhook-entry: ${encodeURIComponent(entry.name)}`,
  ];
  const controller = new AbortController();
  let missed = 0;
  const checks = setInterval(async () => {
    const isAlive = await request(entry.socket, "/healthz", "GET", [], "", AbortSignal.timeout(CHECK_LIMIT_MS)).catch(() => undefined);
    missed = isAlive ? 0 : missed + 1;
    if (missed >= MAX_MISSED_CHECKS) controller.abort();
  }, CHECK_INTERVAL_MS);
  const limit = entry.timeout && setTimeout(() => controller.abort(), entry.timeout);
  try {
    const { status, head, body } = await request(entry.socket, `/hooks/${entry.agent}?folders=${entry.folders}`, "POST", headers, text, controller.signal);
    const code = Number.parseInt(head.get("x-anyhook-exit-code") ?? "", 10);
    if (status !== 200 || Number.isNaN(code)) return undefined;
    return { code, out: body, errors: decodeURIComponent(head.get("x-anyhook-stderr") ?? "") };
  } finally {
    clearInterval(checks);
    clearTimeout(limit);
  }
}

/** One request over a socket. With HTTP/1.0 the answer ends with the connection. */
async function request(path, route, method, headers, text, signal) {
  const { connect } = await import("node:net");
  const body = Buffer.from(text);
  const lines = [`${method} ${route} HTTP/1.0`, "host: localhost", "content-type: application/json", ...headers];
  const head = [...lines, `content-length: ${body.length}`, "", ""].join("\r\n");
  const parts = [];
  await new Promise((resolve, reject) => {
    const socket = connect({ path });
    const abort = () => socket.destroy(new Error("no answer"));
    signal.addEventListener("abort", abort);
    socket.on("data", (part) => parts.push(part));
    socket.on("error", reject);
    socket.on("end", () => (socket.end(), resolve()));
    socket.on("close", () => (signal.removeEventListener("abort", abort), reject(new Error("closed"))));
    socket.on("connect", () => socket.write(Buffer.concat([Buffer.from(head), body])));
  });
  return response(Buffer.concat(parts).toString("utf8"));
}

/** Fails if a part of the answer is missing. */
function response(text) {
  const end = text.indexOf("\r\n\r\n");
  if (end < 0) throw new Error("no answer");
  const [first, ...lines] = text.slice(0, end).split("\r\n");
  const head = new Map(lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 1).trim()]));
  const body = text.slice(end + 4);
  const length = head.get("content-length");
  if (length !== undefined && Number(length) !== Buffer.byteLength(body)) throw new Error("cut off");
  return { status: Number(first.split(" ")[1]), head, body };
}
