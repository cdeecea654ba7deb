import { APIConnectionError, failureOf } from "./errors.js";
import { readEvents } from "./events.js";
import { sleep } from "./timer.js";
import type { Optional } from "./optional.js";
import type { Transport } from "./transport.js";
import type { Import, Schemas, StartedFile, StartedImport } from "./types.js";

/** Milliseconds without data after which a stream of events is broken: the server sends a heartbeat every 15 seconds. */
const longestSilence = 45_000;

export interface ImportOptions {
  platform?: string | undefined;
  /** Restores an export of Mnemo without its invalid lines, which a warning of the import names. */
  skipInvalid?: boolean | undefined;
  idempotencyKey?: string | undefined;
}

/** Imports of chat exports. */
export class Imports {
  constructor(private readonly transport: Transport) {}

  /** Uploads an export of an assistant or of Mnemo. The server continues with the import. */
  create(file: Blob, options: ImportOptions & Optional<{ name: string }> = {}): Promise<StartedImport> {
    return this.#create([{ file, name: options.name }], options);
  }

  /** Uploads up to 10 exports in one request, all or none. Each has an import of its own. */
  async createMany(
    files: { file: Blob; name?: string | undefined }[],
    options: ImportOptions = {},
  ): Promise<StartedFile[]> {
    return (await this.#create(files, options)).imports;
  }

  #create(files: { file: Blob; name?: string | undefined }[], options: ImportOptions): Promise<StartedImport> {
    const form = new FormData();
    if (options.platform) form.set("platform", options.platform);
    if (options.skipInvalid) form.set("skipInvalid", "true");
    files.forEach(({ file, name }, i) => form.append(i ? "files" : "file", file, name ?? nameOf(file)));
    return this.transport.call({
      method: "POST",
      path: "/api/chat-history/import",
      form,
      idempotencyKey: options.idempotencyKey,
    });
  }

  /** Returns the status of an import. */
  get(importId: string): Promise<Import> {
    return this.transport.call({ method: "GET", path: importPath(importId) });
  }

  /** Yields imports, newest first. */
  async *list(options: Optional<{ pageSize: number }> = {}): AsyncGenerator<Import, void> {
    for (let page = 1, last = 1; page <= last; page++) {
      const query = { pageSize: options.pageSize ?? 100, page };
      const found: Schemas["ImportPage"] = await this.transport.call({ method: "GET", path: "/api/chat-history/imports", query });
      yield* found.items;
      last = found.totalPages;
    }
  }

  /** Yields the status of an import now and after each change, until it failed or is done and indexed. */
  async *follow(importId: string): AsyncGenerator<Import, void> {
    for (let last = "", failures = 0; ; ) {
      const headers: Record<string, string> = last ? { "Last-Event-ID": last } : {};
      const body = await this.transport.send({ method: "GET", path: `${importPath(importId)}/events`, headers, idle: longestSilence });
      if (!body) return; // 204: nothing follows
      let interruption = new APIConnectionError("the stream of events ended");
      try {
        for await (const event of readEvents(body)) {
          const status = JSON.parse(event.data) as Import;
          [last, failures] = [event.id, 0];
          yield status;
          if (isSettled(status)) return;
        }
      } catch (e) {
        if (!(e instanceof APIConnectionError)) throw e;
        interruption = e;
      }
      const pause = this.transport.delay(failures++);
      if (pause === undefined) throw interruption;
      await sleep(pause);
    }
  }

  /**
   * Waits until an import is done: its conversations are found by keyword, or with indexed also by meaning.
   * Throws ImportFailedError if the file cannot be imported.
   */
  async wait(importId: string, options: Optional<{ indexed: boolean }> = {}): Promise<Import> {
    let status = await this.get(importId);
    for await (status of this.follow(importId)) {
      if (status.status === "done" && !options.indexed) break;
    }
    if (status.status === "failed") throw failureOf(status);
    return status;
  }
}

/** Returns the name of a file that was chosen in a browser, or of any other content. */
function nameOf(file: Blob): string {
  return "name" in file && typeof file.name === "string" && file.name ? file.name : "export";
}

/** Returns the path of an import. */
export function importPath(importId: string): string {
  return `/api/chat-history/imports/${encodeURIComponent(importId)}`;
}

function isSettled(status: Import): boolean {
  return status.status === "failed" || (status.status === "done" && status.indexed >= status.total);
}
