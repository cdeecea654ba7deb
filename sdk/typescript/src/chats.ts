import { failureOf, ImportFailedError, MnemoError } from "./errors.js";
import { importPath } from "./imports.js";
import type { Optional } from "./optional.js";
import type { Transport } from "./transport.js";
import type {
  Conversation,
  ConversationSummary,
  DeletedConversations,
  Import,
  Ingested,
  IngestMessage,
  Recollection,
  Schemas,
  SearchResult,
  UpdatedConversations,
} from "./types.js";

/** A message to store. id defaults to its number and createdAt to a time after the previous message. */
export type Message = Pick<IngestMessage, "role" | "content"> & Optional<{ id: string; createdAt: string | Date }>;

export interface IngestOptions {
  /** Sending an id again adds the messages whose ids are new and replaces the others. Default: a new id. */
  conversationId?: string | undefined;
  title?: string | undefined;
  platform?: string | undefined;
  createdAt?: Date | undefined;
  idempotencyKey?: string | undefined;
}

export interface ListOptions {
  provider?: string | undefined;
  title?: string | undefined;
  dateFrom?: string | undefined;
  dateTo?: string | undefined;
  pinnedOnly?: boolean | undefined;
  importId?: string | undefined;
  status?: "active" | "excluded" | "blocked" | "all" | undefined;
  pageSize?: number | undefined;
}

const chats = "/api/chat-history/chats";

/** Conversations. */
export class Chats {
  constructor(private readonly transport: Transport) {}

  /** Returns the messages that match a question, best first, with their surroundings. */
  async search(query: string, options: Optional<Omit<Schemas["SearchRequest"], "query">> = {}): Promise<SearchResult[]> {
    const body: Schemas["SearchRequest"] = { query, ...options };
    const path = "/api/chat-history/search";
    return (await this.transport.call<Schemas["SearchResults"]>({ method: "POST", path, body })).results;
  }

  /** Returns cited excerpts for a question, to be inserted into a prompt. */
  recall(query: string, options: Optional<Omit<Schemas["RecallRequest"], "query" | "queries">> = {}): Promise<Recollection> {
    return this.transport.call({ method: "POST", path: "/api/chat-history/recall", body: { query, ...options } });
  }

  /**
   * Stores a conversation. Throws ImportFailedError, and stores nothing, if the request has more than 100,000 tokens, or if
   * the conversation would grow beyond 32 MiB or 100,000 messages.
   */
  async ingest(messages: Message[], options: IngestOptions = {}): Promise<Ingested> {
    const start = options.createdAt ?? new Date();
    const conversation: Schemas["IngestConversation"] = {
      id: options.conversationId ?? `${start.getTime()}-${Math.random().toString(36).slice(2)}`,
      title: options.title ?? beginning(messages[0]?.content ?? ""),
      createdAt: start.toISOString(),
      messages: messages.map((m, i) => ({
        id: m.id ?? String(i),
        role: m.role,
        content: m.content,
        createdAt: new Date(m.createdAt ?? start.getTime() + i).toISOString(),
      })),
    };
    const { body, headers } = await this.transport.callWithHeaders<Ingested>({
      method: "POST",
      path: "/api/chat-history/ingest/custom-online",
      body: { conversation, platform: options.platform ?? "custom" },
      idempotencyKey: options.idempotencyKey,
    });
    if (headers.get("X-Import-Status") === "failed") throw await this.#failure(body.importId);
    return body;
  }

  async #failure(importId: string): Promise<ImportFailedError> {
    try {
      return failureOf(await this.transport.call<Import>({ method: "GET", path: importPath(importId) }));
    } catch (e) {
      if (!(e instanceof MnemoError)) throw e; // otherwise for example because the key may only write
      return new ImportFailedError(`import ${importId} failed; its reason could not be read: ${e.message}`, { cause: e });
    }
  }

  /** Yields conversations, and requests pages as needed. */
  async *list(options: ListOptions = {}): AsyncGenerator<ConversationSummary, void> {
    for (let page = 1, last = 1; page <= last; page++) {
      const query = { ...options, pageSize: options.pageSize ?? 100, page };
      const found: Schemas["ConversationPage"] = await this.transport.call({ method: "GET", path: chats, query });
      yield* found.items;
      last = found.totalPages;
    }
  }

  /** Returns a conversation with its messages. */
  get(conversationId: string): Promise<Conversation> {
    return this.transport.call({ method: "GET", path: "/api/chat-history/conversation", query: { conversationId } });
  }

  /** Returns the number of active conversations. */
  async count(): Promise<number> {
    const path = "/api/chat-history/count";
    return (await this.transport.call<Schemas["ConversationCount"]>({ method: "GET", path })).count;
  }

  /** Excludes conversations from search, or pins them. */
  update(ids: string[], changes: Optional<{ excluded: boolean; pinned: boolean }>): Promise<UpdatedConversations> {
    return this.transport.call({ method: "PATCH", path: chats, body: { ids, ...changes } });
  }

  /** Deletes conversations with their messages. This cannot be undone. */
  delete(ids: string[]): Promise<DeletedConversations> {
    return this.transport.call({ method: "DELETE", path: chats, body: { ids } });
  }
}

/** Returns at most 80 characters. A character may have two units of UTF-16, of which the server accepts none alone. */
function beginning(text: string): string {
  return /^.{0,80}/su.exec(text)?.[0] ?? "";
}
