import type { Stream } from "./body.js";

interface Event {
  id: string;
  data: string;
}

/** Yields the server-sent events of a response. */
export async function* readEvents(body: Stream): AsyncGenerator<Event, void> {
  let event: Event = { id: "", data: "" };
  for await (const line of readLines(body)) {
    if (line === "") {
      if (event.data) yield event;
      event = { id: "", data: "" };
      continue;
    }
    const [name, value = ""] = line.split(/:(.*)/s);
    if (name === "id") event.id = value.trimStart();
    if (name === "data") event.data += value.replace(/^ /, "");
  }
}

async function* readLines(body: Stream): AsyncGenerator<string, void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      yield* lines.map((line) => line.replace(/\r$/, ""));
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
