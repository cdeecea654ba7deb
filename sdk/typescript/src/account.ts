import type { Transport } from "./transport.js";
import type { DeletedAccount } from "./types.js";

/** All data of the user. */
export class Account {
  constructor(private readonly transport: Transport) {}

  /** Returns a zip file with all data, as a stream. */
  async export(): Promise<ReadableStream<Uint8Array>> {
    return (await this.transport.send({ method: "GET", path: "/api/export" })) ?? new ReadableStream();
  }

  /** Deletes all data of the user. */
  delete(confirm: "delete everything"): Promise<DeletedAccount> {
    return this.transport.call({ method: "DELETE", path: "/api/account", body: { confirm } });
  }
}
