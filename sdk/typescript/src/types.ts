import type { components } from "./schema.js";

type Schemas = components["schemas"];

export type AnyResult = Schemas["AnyResult"];
export type Bucket = Schemas["Bucket"];
export type Conversation = Schemas["Conversation"];
export type ConversationSummary = Schemas["ConversationSummary"];
export type CreatedBucket = Schemas["CreatedBucket"];
export type CreatedMemory = Schemas["CreatedMemory"];
export type DeletedAccount = Schemas["DeletedAccount"];
export type DeletedBucket = Schemas["DeletedBucket"];
export type DeletedConversations = Schemas["DeletedConversations"];
export type DeletedMemories = Schemas["DeletedMemories"];
export type FullMemory = Schemas["FullMemory"];
export type Import = Schemas["Import"];
export type Ingested = Schemas["Ingested"];
export type IngestMessage = Schemas["IngestMessage"];
export type Memory = Schemas["Memory"];
export type MemoryVersion = Schemas["MemoryVersion"];
export type MergedMemories = Schemas["MergedMemories"];
export type Recollection = Schemas["Recollection"];
export type SearchResult = Schemas["SearchResult"];
export type StartedFile = Schemas["StartedFile"];
export type StartedImport = Schemas["StartedImport"];
export type UnmergedMemories = Schemas["UnmergedMemories"];
export type UpdatedConversations = Schemas["UpdatedConversations"];
export type UpdatedMemory = Schemas["UpdatedMemory"];
export type { Schemas };
