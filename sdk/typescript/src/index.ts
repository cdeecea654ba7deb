export { Mnemo } from "./client.js";
export {
  APIConnectionError,
  APIError,
  APITimeoutError,
  AuthenticationError,
  BadRequestError,
  ConflictError,
  ImportFailedError,
  MnemoError,
  NotFoundError,
  PermissionDeniedError,
  QuotaExceededError,
  RateLimitError,
  TooLargeError,
  UnavailableError,
} from "./errors.js";
export type { IngestOptions, ListOptions, Message } from "./chats.js";
export type { ImportOptions } from "./imports.js";
export type { CreateOptions, Filter, ListMemoriesOptions, MemoryChanges, SearchOptions } from "./memories.js";
export type { Options } from "./transport.js";
export type * from "./types.js";
