import { APIConnectionError, APITimeoutError } from "./errors.js";
import { after } from "./timer.js";

/** The body of a response. */
export type Stream = ReadableStream<Uint8Array>;

/** Returns a body whose reads fail with APITimeoutError after some milliseconds without data. Only a pending read has a timer. */
export function withTimeout(body: Stream, milliseconds: number, message: string): Stream {
  const reader = body.getReader();
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
    try {
      const { done, value } = await within(milliseconds, message, reader.read());
      if (done) controller.close();
      else controller.enqueue(value);
    } catch (e) {
      controller.error(e instanceof APITimeoutError ? e : new APIConnectionError("the connection broke", { cause: e }));
      reader.cancel(e).catch(() => undefined);
    }
  };
  return new ReadableStream({ pull, cancel: (reason) => reader.cancel(reason) }, { highWaterMark: 0 });
}

/** Returns the text of a body. */
export async function readText(body: Stream | null): Promise<string> {
  const reader = body?.getReader();
  const decoder = new TextDecoder();
  for (let text = ""; ; ) {
    const { done, value } = (await reader?.read()) ?? { done: true };
    if (done) return text + decoder.decode();
    text += decoder.decode(value, { stream: true });
  }
}

/** Returns the result of a promise, or throws APITimeoutError. */
async function within<T>(milliseconds: number, message: string, result: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = after(milliseconds, () => reject(new APITimeoutError(message)));
  });
  try {
    return await Promise.race([result, late]);
  } finally {
    clearTimeout(timer);
  }
}
