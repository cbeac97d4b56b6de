// Data of the server: single requests and live events.

// Returns the JSON of an address; an error has the server's message.
export async function ask(address, signal) {
  return answerOf(() => fetch(address, { signal }));
}

// Asks the server to do something.
export async function order(address, body = {}, signal = undefined) {
  const asked = {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    signal,
  };
  return answerOf(() => fetch(address, asked));
}

async function answerOf(send) {
  let response;
  try {
    response = await send();
  } catch (wrong) {
    if (wrong.name === "AbortError") throw wrong;
    throw new Error("The server does not answer. Is sparring serve still running?");
  }
  const answer = await response.json().catch(() => null);
  if (response.ok) return answer;
  throw new Error(answer?.error ?? `The server answered with ${response.status}.`);
}

// Receives events until the page is left: live("/api/live", { runs: show }, signal). `connected` is
// called with false while the server is away; the browser reconnects by itself. An address may be a
// function, which is called for every new connection.
export function live(address, handlers, signal, connected = () => {}) {
  let source = null;
  let again = 0;
  const open = () => {
    source = new EventSource(typeof address === "function" ? address() : address);
    source.addEventListener("open", () => connected(true));
    source.addEventListener("error", () => {
      connected(false);
      if (source.readyState === EventSource.CLOSED) again = setTimeout(open, 3000);
    });
    for (const [event, handle] of Object.entries(handlers)) {
      source.addEventListener(event, (message) => handle(JSON.parse(message.data)));
    }
  };
  open();
  signal.addEventListener("abort", () => {
    clearTimeout(again);
    source.close();
  });
}
