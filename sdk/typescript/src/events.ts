import { APIConnectionError } from "./errors.js";

interface Event {
  id: string;
  data: string;
}

/** Yields the server-sent events of a response. */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<Event, void> {
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

async function* readLines(body: ReadableStream<Uint8Array>): AsyncGenerator<string, void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await read(reader);
      if (done) return;
      const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      yield* lines.map((line) => line.replace(/\r$/, ""));
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

async function read(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<ReadableStreamReadResult<Uint8Array>> {
  try {
    return await reader.read();
  } catch (e) {
    throw new APIConnectionError("the connection broke", { cause: e });
  }
}
