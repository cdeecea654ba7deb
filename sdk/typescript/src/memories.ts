import type { Transport } from "./transport.js";
import type { CreatedMemory, DeletedMemories, FullMemory, Memory, MemoryVersion, Schemas, UpdatedMemory } from "./types.js";

type Id = number | string;

export interface SearchOptions {
  limit?: number;
  bucket?: Id;
  minScore?: number;
  /** A time: later memories are ignored. */
  asOf?: string;
}

/** Short texts about a user. */
export class Memories {
  constructor(private readonly transport: Transport) {}

  /** Stores a memory. Begin the text with the date, YYYY-MM-DD. */
  create(text: string, options: { bucket?: Id; source?: string; idempotencyKey?: string } = {}): Promise<CreatedMemory> {
    const body: Schemas["CreateMemoryRequest"] = { text, bucketId: number(options.bucket), source: options.source };
    return this.transport.call({ method: "POST", path: "/api/v2/memory", body, idempotencyKey: options.idempotencyKey });
  }

  /** Returns the memories that match a question, best first. */
  async search(query: string, options: SearchOptions = {}): Promise<Memory[]> {
    const found = await this.transport.call<Schemas["MemoryList"]>({
      method: "GET",
      path: "/api/v2/memory",
      query: {
        query,
        count: options.limit ?? 10,
        bucketId: options.bucket,
        minScore: options.minScore,
        asOf: options.asOf,
      },
    });
    return found.memories;
  }

  /** Yields all memories, oldest first or latest first, and requests pages as needed. */
  async *list(options: { bucket?: Id; latest?: boolean; pageSize?: number } = {}): AsyncGenerator<Memory, void> {
    for (let skip: number | undefined = 0; skip !== undefined; ) {
      const page: Schemas["MemoryList"] = await this.transport.call({
        method: "GET",
        path: "/api/v2/memory",
        query: { bucketId: options.bucket, latest: options.latest, count: options.pageSize ?? 100, skip },
      });
      yield* page.memories;
      skip = page.nextSkip;
    }
  }

  /** Returns a memory. */
  get(memoryId: string): Promise<FullMemory> {
    return this.transport.call({ method: "GET", path: `/api/memories/${encodeURIComponent(memoryId)}` });
  }

  /** Changes the text of a memory, or moves it to a bucket by id or name. A changed text is a new version. */
  update(memoryId: string, changes: { text?: string; bucket?: Id; bucketName?: string }): Promise<UpdatedMemory> {
    return this.#update({
      memoryId,
      text: changes.text,
      bucketId: number(changes.bucket),
      bucketName: changes.bucketName,
    });
  }

  /** Moves up to 100 memories to a bucket: all of them, or none if an id does not exist. */
  move(memoryIds: string[], target: { bucket?: Id; bucketName?: string }): Promise<UpdatedMemory> {
    return this.#update({ memoryIds, bucketId: number(target.bucket), bucketName: target.bucketName });
  }

  /** Deletes a memory with its versions. */
  async delete(memoryId: string): Promise<void> {
    await this.transport.call({ method: "DELETE", path: `/api/memories/${encodeURIComponent(memoryId)}` });
  }

  /** Deletes up to 10,000 memories. Ids that do not exist are skipped. */
  deleteMany(memoryIds: string[]): Promise<DeletedMemories> {
    return this.transport.call({ method: "POST", path: "/api/memories/bulk-delete", body: { memoryIds } });
  }

  /** Yields the versions of a memory, newest first. */
  async *versions(memoryId: string, options: { pageSize?: number } = {}): AsyncGenerator<MemoryVersion, void> {
    for (let skip: number | undefined = 0; skip !== undefined; ) {
      const page: Schemas["MemoryVersions"] = await this.transport.call({
        method: "GET",
        path: `/api/memories/${encodeURIComponent(memoryId)}/versions`,
        query: { count: options.pageSize ?? 100, skip },
      });
      yield* page.versions;
      skip = page.nextSkip;
    }
  }

  #update(body: Schemas["UpdateMemoryRequest"]): Promise<UpdatedMemory> {
    return this.transport.call({ method: "POST", path: "/api/v2/memory/update", body });
  }
}

function number(id: Id | undefined): number | undefined {
  return id === undefined ? undefined : Number(id);
}
