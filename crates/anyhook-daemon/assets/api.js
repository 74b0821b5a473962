// Requests to the daemon: the page's key, queries, the live stream.

const KEY = "anyhook.token";

export class Locked extends Error {}

/** Exchanges the code of a one-time link, if there is one, for the key of this page. */
export async function unlock() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (!code) return;
  history.replaceState(null, "", "#/timeline");
  const response = await fetch("/session", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ code }),
  });
  if (response.ok) localStorage.setItem(KEY, (await response.json()).token);
}

const headers = () => ({ authorization: `Bearer ${localStorage.getItem(KEY) || ""}` });

export function query(parameters) {
  const full = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return new URLSearchParams(full).toString();
}

export async function fetchJson(path, parameters = {}) {
  return parsed(await fetch(`${path}?${query(parameters)}`, { headers: headers() }));
}

export async function postJson(path, body) {
  const json = { "content-type": "application/json" };
  return parsed(await fetch(path, { method: "POST", headers: { ...headers(), ...json }, body: JSON.stringify(body) }));
}

async function parsed(response) {
  if (response.status === 401) throw new Locked();
  const body = await response.json();
  if (!response.ok) throw new Error(body.error?.message || `status ${response.status}`);
  return body;
}

/**
 * Live events. Calls `on.open()` when connected, `on.event(event)` for each event and
 * `on.disconnected()` when the connection is lost; resumes after the last event until `stop()`.
 * Not an EventSource: that cannot send a key.
 */
export function stream(parameters, on) {
  const control = new AbortController();
  let last;
  let pause = 1000;
  const run = async () => {
    while (!control.signal.aborted) {
      try {
        const resumed = last === undefined ? {} : { "last-event-id": last };
        const response = await fetch(`/stream?${query(parameters)}`, {
          headers: { ...headers(), ...resumed },
          signal: control.signal,
        });
        if (response.status === 401) return on.locked();
        if (!response.ok) throw new Error(String(response.status));
        for await (const message of messages(response.body)) {
          if (message.id) last = message.id;
          if (message.event === "open") {
            pause = 1000;
            on.open();
          } else on.event(JSON.parse(message.data));
        }
      } catch {
        // Disconnected, or never connected: try again.
      }
      if (control.signal.aborted) return;
      on.disconnected();
      await new Promise((done) => setTimeout(done, pause * (0.5 + Math.random() / 2)));
      pause = Math.min(pause * 2, 15000);
    }
  };
  run();
  return { stop: () => control.abort() };
}

async function* messages(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  let message = {};
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    let end;
    while ((end = text.indexOf("\n")) >= 0) {
      const line = text.slice(0, end);
      text = text.slice(end + 1);
      if (line === "") {
        if (message.data !== undefined) yield message;
        message = {};
      } else if (!line.startsWith(":")) {
        const at = line.indexOf(":");
        message[line.slice(0, at)] = line.slice(at + 1).replace(/^ /, "");
      }
    }
  }
}
