import { readText, type Stream, withTimeout } from "./body.js";
import { APIConnectionError, APITimeoutError, errorOf, MnemoError, retryAfter } from "./errors.js";
import { after, sleep } from "./timer.js";

/** The settings of a client. */
export interface Options {
  /** The address of the server. Default: the environment variable MNEMO_URL. */
  url?: string | undefined;
  /** The API key. Default: the environment variable MNEMO_API_KEY. */
  apiKey?: string | undefined;
  /** With the key of an application: the id of the user on whose behalf it acts. */
  user?: string | undefined;
  /** Milliseconds to wait for a response, and for each part of its body. An upload may last a second more per 8 KiB. Default: 60,000. */
  timeout?: number | undefined;
  /** The number of retries after a connection error and the statuses 408, 429, 502, 503 and 504. Default: 4. */
  maxRetries?: number | undefined;
  /** Replaces the global fetch. */
  fetch?: typeof fetch | undefined;
}

/** One logical request. All its attempts have the same Idempotency-Key. */
export interface Call {
  method: "GET" | "POST" | "PATCH" | "DELETE";
  path: string;
  query?: Record<string, string | number | boolean | undefined>;
  body?: object;
  form?: FormData;
  headers?: Record<string, string>;
  idempotencyKey?: string;
  /** Milliseconds without data after which a body ends, if they are more than the timeout. */
  idle?: number;
  /** The response to a deletion that an earlier attempt executed, so that this one does not find what it deletes. */
  gone?: object;
}

const retried = new Set([408, 429, 502, 503, 504]);
const longestRetryAfter = 120;
/** Bytes per second. The server ends slower uploads. */
const minUploadRate = 8 << 10;

/** Sends calls and retries them. */
export class Transport {
  readonly #options: Options;
  readonly #url: string;
  readonly #apiKey: string;
  readonly maxRetries: number;

  constructor(options: Options) {
    const url = (options.url || environment("MNEMO_URL"))?.trim();
    const apiKey = (options.apiKey || environment("MNEMO_API_KEY") || environment("MNEMO_TOKEN"))?.trim();
    if (!url) throw new MnemoError("url is required: pass url or set MNEMO_URL, for example to https://mnemo.example.com");
    if (!apiKey) throw new MnemoError("apiKey is required: pass apiKey or set MNEMO_API_KEY to a token, which the dashboard creates under Connect");
    if (!/^[!-~]+$/.test(apiKey)) throw new MnemoError('apiKey must be a token without spaces, and without "Bearer"');
    this.#options = { ...options, url, apiKey };
    this.#url = withScheme(url).replace(/\/+$/, "");
    this.#apiKey = apiKey;
    this.maxRetries = options.maxRetries ?? 4;
  }

  get #timeout(): number {
    return this.#options.timeout ?? 60_000;
  }

  get #late(): string {
    return `${this.#url} did not respond in time`;
  }

  /** Returns a transport that acts for a user. */
  forUser(user: string): Transport {
    return new Transport({ ...this.#options, user });
  }

  /** Returns the body of the response. */
  async call<T>(call: Call): Promise<T> {
    return (await this.callWithHeaders<T>(call)).body;
  }

  /** Returns the body and the headers of the response. */
  async callWithHeaders<T>(call: Call): Promise<{ body: T; headers: Headers }> {
    const { body, headers } = await this.#send(call);
    try {
      return { body: JSON.parse(await readText(body)) as T, headers };
    } catch (e) {
      if (e instanceof APITimeoutError) throw e;
      throw new APIConnectionError(`incomplete response to ${call.method} ${call.path}`, { cause: e });
    }
  }

  /** Returns the body of a successful response. It is still to be read, and each read has the timeout. */
  async send(call: Call): Promise<Stream | null> {
    return (await this.#send(call)).body;
  }

  async #send(call: Call): Promise<{ body: Stream | null; headers: Headers }> {
    const headers = this.#headers(call);
    for (let attempt = 0, uncertain = false; ; attempt++) {
      let pause: number | undefined;
      try {
        const response = await this.#attempt(call, headers);
        const body = response.body && withTimeout(response.body, Math.max(this.#timeout, call.idle ?? 0), this.#late);
        if (response.ok) return { body, headers: response.headers };
        pause = this.delay(attempt, response);
        if (pause === undefined) {
          const e = errorOf(response, await readText(body).catch(() => ""));
          if (uncertain && call.gone && e.code === "not_found") return new Response(JSON.stringify(call.gone));
          throw e;
        }
        await body?.cancel();
        uncertain ||= response.status >= 500;
      } catch (e) {
        if (!(e instanceof APIConnectionError)) throw e;
        pause = this.delay(attempt);
        if (pause === undefined) throw e;
        uncertain = true;
      }
      await sleep(pause);
    }
  }

  /** Returns the milliseconds before the next attempt, or undefined if there is none. */
  delay(attempt: number, response?: Response): number | undefined {
    if (attempt >= this.maxRetries) return undefined;
    const backoff = Math.min(500 * 2 ** attempt, 8000) * (0.5 + Math.random() / 2);
    if (!response) return backoff;
    if (!retried.has(response.status)) return undefined;
    const told = retryAfter(response);
    if (told === undefined) return backoff;
    return told <= longestRetryAfter ? told * 1000 : undefined;
  }

  #headers(call: Call): Record<string, string> {
    const headers: Record<string, string> = { Authorization: `Bearer ${this.#apiKey}`, ...call.headers };
    if (this.#options.user !== undefined) headers["X-Mnemo-User"] = asBytes(this.#options.user);
    if (call.body) headers["Content-Type"] = "application/json";
    if (call.method === "POST") headers["Idempotency-Key"] = call.idempotencyKey ?? randomKey();
    return headers;
  }

  async #attempt(call: Call, headers: Record<string, string>): Promise<Response> {
    const url = new URL(this.#url + call.path);
    for (const [name, value] of Object.entries(call.query ?? {})) {
      if (value !== undefined) url.searchParams.set(name, String(value));
    }
    const abort = new AbortController();
    const timer = after(this.#timeout + uploadTime(call.form), () => abort.abort());
    const send = this.#options.fetch ?? fetch;
    try {
      const body = call.form ?? (call.body && JSON.stringify(call.body));
      return await send(url, { method: call.method, headers, body, signal: abort.signal });
    } catch (e) {
      if (abort.signal.aborted) throw new APITimeoutError(this.#late, { cause: e });
      throw new APIConnectionError(`connection to ${this.#url} failed: ${reason(e)}`, { cause: e });
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Returns the longest time in milliseconds that an upload may last. */
function uploadTime(form: FormData | undefined): number {
  let size = 0;
  for (const value of form?.values() ?? []) size += typeof value === "string" ? value.length : value.size;
  return (1000 * size) / minUploadRate;
}

/** Returns a header whose bytes are UTF-8: fetch sends each character as a byte and refuses others. */
function asBytes(value: string): string {
  return Array.from(new TextEncoder().encode(value), (byte) => String.fromCharCode(byte)).join("");
}

/** Returns the message of a failed fetch, which hides the reason in its cause. */
function reason(e: unknown): string {
  if (!(e instanceof Error)) return String(e);
  return e.cause instanceof Error && e.cause.message ? e.cause.message : e.message;
}

/** Returns an environment variable, if the runtime has them. */
function environment(name: string): string | undefined {
  const runtime = globalThis as { process?: { env?: Record<string, string | undefined> } };
  return runtime.process?.env?.[name];
}

/** Adds http for this machine and https for any other one, like the command line. */
function withScheme(url: string): string {
  if (url.includes("://")) return url;
  return (/^(localhost|127\.0\.0\.1|\[::1\])/.test(url) ? "http://" : "https://") + url;
}

/** Returns a random key. Unlike randomUUID, getRandomValues also exists in pages without https. */
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
