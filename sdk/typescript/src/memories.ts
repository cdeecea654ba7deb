import type { Optional } from "./optional.js";
import type { Transport } from "./transport.js";
import type { CreatedMemory, DeletedMemories, FullMemory, Memory, MemoryVersion, MergedMemories, Schemas, UnmergedMemories, UpdatedMemory } from "./types.js";

type Id = number | string;

/** A condition of memories, such as `{ tags: "travel" }`. */
export type Filter = Record<string, unknown>;

export interface CreateOptions {
  bucket?: Id | undefined;
  source?: string | undefined;
  tags?: string[] | undefined;
  agentId?: string | undefined;
  runId?: string | undefined;
  /** Any JSON object of at most 4 KiB, which filters select by. */
  metadata?: Record<string, unknown> | undefined;
  idempotencyKey?: string | undefined;
}

export interface MemoryChanges {
  text?: string | undefined;
  bucket?: Id | undefined;
  bucketName?: string | undefined;
  tags?: string[] | undefined;
  agentId?: string | undefined;
  runId?: string | undefined;
  metadata?: Record<string, unknown> | undefined;
}

export interface ListMemoriesOptions {
  bucket?: Id | undefined;
  latest?: boolean | undefined;
  filter?: Filter | undefined;
  pageSize?: number | undefined;
}

export interface SearchOptions {
  limit?: number | undefined;
  bucket?: Id | undefined;
  minScore?: number | undefined;
  /** A time: later memories are ignored. */
  asOf?: string | undefined;
  filter?: Filter | undefined;
}

/** Short texts about a user. */
export class Memories {
  constructor(private readonly transport: Transport) {}

  /** Stores a memory. Begin the text with the date, YYYY-MM-DD. */
  create(text: string, options: CreateOptions = {}): Promise<CreatedMemory> {
    const { bucket, metadata, idempotencyKey, ...attributes } = options;
    const body: Schemas["CreateMemoryRequest"] = { text, bucketId: number(bucket), customMetadata: metadata, ...attributes };
    return this.transport.call({ method: "POST", path: "/api/v2/memory", body, idempotencyKey });
  }

  /** Returns the memories that match a question, best first. */
  async search(query: string, options: SearchOptions = {}): Promise<Memory[]> {
    const { limit = 10, bucket, minScore, asOf, filter } = options;
    const base = { query, bucketId: bucket, minScore, asOf, filter: filter && JSON.stringify(filter) };
    const found: Memory[] = [];
    for (let skip: number | undefined = 0; skip !== undefined; ) {
      const page: Schemas["MemoryList"] = await this.transport.call({
        method: "GET",
        path: "/api/v2/memory",
        query: { ...base, count: limit - found.length, skip },
      });
      found.push(...page.memories);
      skip = found.length < limit ? page.nextSkip : undefined;
    }
    return found;
  }

  /** Yields all memories, or those that match a filter, oldest first or latest first, and requests pages as needed. */
  async *list(options: ListMemoriesOptions = {}): AsyncGenerator<Memory, void> {
    for (let skip: number | undefined = 0; skip !== undefined; ) {
      const page: Schemas["MemoryList"] = await this.transport.call({
        method: "GET",
        path: "/api/v2/memory",
        query: {
          bucketId: options.bucket,
          latest: options.latest,
          filter: options.filter && JSON.stringify(options.filter),
          count: options.pageSize ?? 100,
          skip,
        },
      });
      yield* page.memories;
      skip = page.nextSkip;
    }
  }

  /** Returns a memory. */
  get(memoryId: string): Promise<FullMemory> {
    return this.transport.call({ method: "GET", path: `/api/memories/${encodeURIComponent(memoryId)}` });
  }

  /** Changes the given fields of a memory, or moves it to a bucket by id or name. A changed text is a new version. */
  update(memoryId: string, changes: MemoryChanges): Promise<UpdatedMemory> {
    const { bucket, metadata, ...rest } = changes;
    return this.#update({ memoryId, bucketId: number(bucket), customMetadata: metadata, ...rest });
  }

  /** Moves up to 100 memories to a bucket: all of them, or none if an id does not exist. */
  move(memoryIds: string[], target: Optional<{ bucket: Id; bucketName: string }>): Promise<UpdatedMemory> {
    return this.#update({ memoryIds, bucketId: number(target.bucket), bucketName: target.bucketName });
  }

  /** Merges up to 100 near-duplicates into a memory: all of them, or none if an id does not exist. */
  merge(memoryId: string, memoryIds: string[]): Promise<MergedMemories> {
    return this.transport.call({ method: "POST", path: `/api/memories/${encodeURIComponent(memoryId)}/merge`, body: { memoryIds } });
  }

  /** Restores memories that were merged into one, by default all of them. */
  unmerge(memoryId: string, memoryIds?: string[]): Promise<UnmergedMemories> {
    return this.transport.call({ method: "POST", path: `/api/memories/${encodeURIComponent(memoryId)}/unmerge`, body: { memoryIds } });
  }

  /** Deletes a memory with its versions, and the memories that were merged into it. */
  async delete(memoryId: string): Promise<void> {
    await this.transport.call({ method: "DELETE", path: `/api/memories/${encodeURIComponent(memoryId)}`, gone: {} });
  }

  /** Deletes up to 10,000 memories. Ids that do not exist are skipped. */
  deleteMany(memoryIds: string[]): Promise<DeletedMemories> {
    return this.transport.call({ method: "POST", path: "/api/memories/bulk-delete", body: { memoryIds } });
  }

  /** Yields the versions of a memory, newest first. */
  async *versions(memoryId: string, options: Optional<{ pageSize: number }> = {}): AsyncGenerator<MemoryVersion, void> {
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
