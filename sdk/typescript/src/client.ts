import { Account } from "./account.js";
import { Buckets } from "./buckets.js";
import { Chats } from "./chats.js";
import { Imports } from "./imports.js";
import { Memories } from "./memories.js";
import type { Optional } from "./optional.js";
import { type Options, Transport } from "./transport.js";
import type { AnyResult, Schemas } from "./types.js";

/** A client of a Mnemo server. */
export class Mnemo {
  readonly memories: Memories;
  readonly buckets: Buckets;
  readonly chats: Chats;
  readonly imports: Imports;
  readonly account: Account;
  readonly #transport: Transport;

  constructor(options: Options | Transport = {}) {
    this.#transport = options instanceof Transport ? options : new Transport(options);
    this.memories = new Memories(this.#transport);
    this.buckets = new Buckets(this.#transport);
    this.chats = new Chats(this.#transport);
    this.imports = new Imports(this.#transport);
    this.account = new Account(this.#transport);
  }

  /** Returns a client that acts for a user, with the key of an application. */
  forUser(user: string): Mnemo {
    return new Mnemo(this.#transport.forUser(user));
  }

  /** Returns memories and passages of conversations in one list, best first. */
  async search(query: string, options: Optional<Omit<Schemas["SearchAllRequest"], "query">> = {}): Promise<AnyResult[]> {
    const body: Schemas["SearchAllRequest"] = { query, ...options };
    return (await this.#transport.call<Schemas["AllResults"]>({ method: "POST", path: "/api/search", body })).results;
  }
}
