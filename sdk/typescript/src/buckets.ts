import type { Optional } from "./optional.js";
import type { Transport } from "./transport.js";
import type { Bucket, CreatedBucket, DeletedBucket } from "./types.js";

/** Groups of memories. */
export class Buckets {
  constructor(private readonly transport: Transport) {}

  /** Creates a bucket. */
  create(name: string, options: Optional<{ description: string; idempotencyKey: string }> = {}): Promise<CreatedBucket> {
    const { idempotencyKey, description } = options;
    return this.transport.call({ method: "POST", path: "/api/buckets", body: { name, description }, idempotencyKey });
  }

  /** Returns all buckets. */
  list(): Promise<Bucket[]> {
    return this.transport.call({ method: "GET", path: "/api/buckets" });
  }

  /** Changes the name or the description of a bucket. */
  async update(bucketId: number | string, changes: Optional<{ name: string; description: string }>): Promise<void> {
    await this.transport.call({ method: "PATCH", path: path(bucketId), body: changes });
  }

  /** Deletes a bucket and moves its memories to the default bucket. */
  delete(bucketId: number | string): Promise<DeletedBucket> {
    const gone: DeletedBucket = { message: "Bucket deleted", movedCount: 0 };
    return this.transport.call({ method: "DELETE", path: path(bucketId), gone });
  }
}

function path(bucketId: number | string): string {
  return `/api/buckets/${encodeURIComponent(bucketId)}`;
}
