# Generated from api/openapi.json by hack/sdk/generate.py. DO NOT EDIT.
"""The resources of the API."""

from __future__ import annotations

from typing import Any

from mnemo._base import Model
from pydantic import AwareDatetime, Field


class ApplicationUser(Model):
    conversations: int
    """
    Active conversations; those over the quota do not count.
    """
    created_at: AwareDatetime
    memories: int
    user: str


class ApplicationUsers(Model):
    next: str | None = None
    """
    The value of after for the next page; absent on the last page.
    """
    users: list[ApplicationUser]


class Bucket(Model):
    description: str
    id: str
    """
    The bucket's id, as a string.
    """
    memory_count: int
    name: str


class BulkError(Model):
    error: str
    memory_id: str


class ChatMessage(Model):
    message_index: int
    sender: str
    text: str
    timestamp: AwareDatetime


class Confirmation(Model):
    message: str


class ContextMessage(Model):
    sender: str
    text: str
    timestamp: AwareDatetime


class Conversation(Model):
    created_at: AwareDatetime
    id: str
    messages: list[ChatMessage]
    platform_conversation_id: str
    source_id: str
    """
    The platform.
    """
    status: str
    title: str
    token_count: int
    total: int
    """
    The number of messages.
    """
    updated_at: AwareDatetime


class ConversationCount(Model):
    count: int


class ConversationSummary(Model):
    created_at: AwareDatetime
    id: str
    message_count: int
    pinned: bool
    platform: str
    status: str
    title: str
    token_count: int
    updated_at: AwareDatetime


class CreateBucketRequest(Model):
    description: str | None = None
    name: str
    """
    1 to 100 characters, not only digits, unique ignoring case.
    """
    source: str | None = None
    """
    The name of the client.
    """


class CreateMemoryRequest(Model):
    agent_id: str | None = None
    """
    The assistant that stores it, at most 256 bytes.
    """
    bucket_id: int | None = None
    """
    The bucket of the memory; defaults to the user's default bucket.
    """
    custom_metadata: dict[str, Any] | None = None
    """
    Any JSON object of at most 4,096 bytes. It counts toward the storage quota. Filters select by its members as metadata.<key>.
    """
    run_id: str | None = None
    """
    The session or run in which it is stored, at most 256 bytes.
    """
    source: str | None = None
    """
    The name of the client.
    """
    tags: list[str] | None = None
    """
    At most 32 tags of 1 to 64 characters. Order and duplicates do not matter.
    """
    text: str
    """
    The text to store verbatim. Start it with the date, YYYY-MM-DD, in the user's time zone if known, else UTC. At most 32,768 bytes.
    """


class CreateTokenRequest(Model):
    expires_at: AwareDatetime | None = None
    """
    In the future. Without it, the token does not expire.
    """
    name: str
    """
    1 to 100 characters, unique among the user's tokens ignoring case.
    """
    scopes: list[str] | None = None
    """
    read: read, search and export data. write: create, change and delete data. admin: manage tokens. Defaults to read and write.
    """


class CreatedBucket(Model):
    id: str
    message: str


class CreatedToken(Model):
    created_at: AwareDatetime
    expires_at: AwareDatetime | None = None
    """
    Absent if it does not expire.
    """
    fingerprint: str
    """
    The first 12 hexadecimal digits of the token's SHA-256, as in audit records.
    """
    id: str
    last_used_at: AwareDatetime | None = None
    """
    Accurate to a minute; absent if never used.
    """
    name: str
    scopes: list[str]
    """
    read, write and admin: see the request to create a token.
    """
    token: str
    """
    The token. It is not shown again.
    """


class DeleteAccountRequest(Model):
    confirm: str
    """
    Confirmation phrase.
    """


class DeleteConversationsRequest(Model):
    ids: list[str]
    """
    The conversations to delete; ids that do not exist are skipped.
    """


class DeleteMemoriesRequest(Model):
    memory_ids: list[str]
    """
    The memories to delete; ids that do not exist are skipped.
    """


class DeletedAccount(Model):
    conversations: int
    """
    The number deleted.
    """
    memories: int
    """
    The number deleted.
    """
    message: str


class DeletedBucket(Model):
    message: str
    moved_count: int
    """
    The number of memories moved to the default bucket.
    """


class DeletedConversations(Model):
    count: int
    deleted: list[str]
    """
    The ids of the deleted conversations.
    """


class DeletedMemories(Model):
    deleted_count: int
    """
    Memories deleted from the database, with those that were merged into them.
    """
    errors: list[BulkError]
    """
    Failed deletions; the memoryId milvus_bulk or postgres_bulk stands for the whole batch.
    """
    message: str


class DeletedUser(Model):
    message: str


class Error(Model):
    code: str = Field(..., examples=["invalid"])
    """
    A stable error code. New codes may be added.
    """
    error: str = Field(..., examples=["text is required and must not be blank"])
    """
    What went wrong and how to fix it.
    """
    rejected_ids: list[str] | None = None
    """
    The ids rejected by a bulk operation.
    """
    request_id: str | None = None
    """
    Identifies the request in the server log; status 500 only.
    """


class Health(Model):
    status: str


class ImportError(Model):
    conversation: str
    """
    The platform's id of the conversation, or its position in the file; empty for the whole file.
    """
    error: str


class IngestMessage(Model):
    content: str
    created_at: AwareDatetime
    id: str
    """
    Unique within the conversation. A message replaces an earlier one with the same id, even in the same request.
    """
    role: str


class IngestedConversation(Model):
    id: str
    message_count: int
    platform_conversation_id: str
    status: str
    title: str
    updated_at: AwareDatetime


class MemoryMetadata(Model):
    bucket_id: int
    bucket_name: str
    created_at: AwareDatetime
    text: str


class MemoryVersion(Model):
    created_at: AwareDatetime
    text: str
    version: int


class MemoryVersions(Model):
    memory_id: str
    next_skip: int | None = None
    """
    The skip of the next page; absent on the last page.
    """
    versions: list[MemoryVersion]
    """
    Newest first.
    """


class MergeMemoriesRequest(Model):
    memory_ids: list[str]
    """
    The memories to merge into this one, all or none.
    """


class MergedMemories(Model):
    memory_id: str
    """
    The memory that was kept.
    """
    memory_ids: list[str]
    """
    The ids without duplicates.
    """
    merged_count: int
    """
    The number of memories merged.
    """
    message: str


class MergedMemory(Model):
    created_at: AwareDatetime
    memory_id: str
    merged_at: AwareDatetime
    text: str


class RecallQuery(Model):
    max_tokens: float | None = None
    """
    Overrides maxTokens for this question.
    """
    query: str


class RecallSource(Model):
    conversation_id: str
    """
    Empty for a memory.
    """
    conversation_title: str
    """
    Empty for a memory.
    """
    date: AwareDatetime
    """
    The time of the message, or when the memory was stored.
    """
    memory_id: str | None = None
    """
    The memory's id. Absent for a message.
    """
    message_id: str
    """
    The platform's id of the message. Empty for a memory.
    """
    relevance_score: float
    """
    The probability that the message is relevant. Comparable only within one response if X-Degraded is set.
    """


class RecallTurn(Model):
    content: str | None = None
    role: str | None = None


class RevokedToken(Model):
    message: str


class SearchAllRequest(Model):
    as_of: str | None = None
    """
    Answer from what was known at this ISO 8601 time: only memories stored and messages written until then; a date includes the whole day.
    """
    context_chunks: int | None = None
    """
    The number of messages of context on either side of a passage; default 4. The farthest are omitted if their texts have more than 256 KiB together.
    """
    filter: dict[str, Any] | None = None
    """
    Only memories that match this filter. Conversations have none of its fields, so include must not contain chats.
    """
    include: list[str] | None = None
    """
    What to search; default both, or only memories with a filter.
    """
    limit: int | None = None
    """
    The number of results; default 20.
    """
    min_score: float | None = None
    """
    The score below which results are omitted. By default, irrelevant results are omitted; 0 returns all. Not applied while the embedding model is unavailable: scores are not comparable then.
    """
    query: str
    """
    A search query in natural language. At most 8,192 bytes.
    """
    time_zone: str | None = None
    """
    The user's IANA time zone, such as Europe/Berlin, of times mentioned in a query, such as today or last May, and of dates and times without a zone; default UTC. Dates in filter are in UTC.
    """


class SearchRequest(Model):
    as_of: str | None = None
    """
    Answer from what was known at this ISO 8601 time: only messages written until then; a date includes the whole day.
    """
    context_chunks: int | None = None
    """
    The number of messages of context on either side; default 4. The farthest are omitted if their texts have more than 256 KiB together.
    """
    date_from: str | None = None
    """
    Only conversations created at or after this ISO 8601 date or time.
    """
    date_to: str | None = None
    """
    Only conversations created at or before this ISO 8601 time; a date includes the whole day.
    """
    limit: int | None = None
    """
    The number of passages; default 20.
    """
    min_score: float | None = None
    """
    The score below which results are omitted. By default, irrelevant results are omitted; 0 returns all. Applies to ranking fused. Not applied while the embedding model is unavailable: scores are not comparable then.
    """
    provider: str | None = None
    """
    The platform, or all. Case does not matter; openai means chatgpt and anthropic means claude.
    """
    query: str
    """
    A search query in natural language. At most 8,192 bytes.
    """
    ranking: str | None = None
    """
    How passages are ranked: by keywords and meaning (fused, the default), by keywords (lexical), or by meaning (dense).
    """
    skip_rerank: bool | None = None
    """
    Do not sort the results again with the reranker, if one is configured.
    """
    time_zone: str | None = None
    """
    The user's IANA time zone, such as Europe/Berlin, of times mentioned in a query, such as today or last May, and of dates and times without a zone; default UTC.
    """


class SearchResult(Model):
    context: list[ContextMessage]
    """
    The surrounding messages, in order.
    """
    conversation_id: str
    message_index: int
    score: float
    """
    The probability that the passage is relevant. Comparable only within one response if ranking is not fused or X-Degraded is set.
    """
    sender: str
    text: str
    timestamp: AwareDatetime
    title: str


class SearchResults(Model):
    processing_time: float
    """
    Milliseconds.
    """
    provider: str
    query: str
    results: list[SearchResult]
    total_results: int


class SimilarMemory(Model):
    memory_id: str
    score: float
    """
    0 for unrelated and 1 for equal texts.
    """
    text: str


class StartedFile(Model):
    file: str
    """
    The name of the file; empty if the request does not contain it.
    """
    import_id: str


class StartedImport(Model):
    import_id: str
    """
    The import of the first file.
    """
    imports: list[StartedFile]
    """
    The import of each file, in order.
    """


class Token(Model):
    created_at: AwareDatetime
    expires_at: AwareDatetime | None = None
    """
    Absent if it does not expire.
    """
    fingerprint: str
    """
    The first 12 hexadecimal digits of the token's SHA-256, as in audit records.
    """
    id: str
    last_used_at: AwareDatetime | None = None
    """
    Accurate to a minute; absent if never used.
    """
    name: str
    scopes: list[str]
    """
    read, write and admin: see the request to create a token.
    """


class Tokens(Model):
    tokens: list[Token]


class UnmergeMemoriesRequest(Model):
    memory_ids: list[str] | None = None
    """
    The memories to restore, all or none; by default all that were merged into this one.
    """


class UnmergedMemories(Model):
    memory_ids: list[str]
    message: str
    restored_count: int
    """
    The number of memories restored.
    """


class UpdateBucketRequest(Model):
    description: str | None = None
    name: str | None = None
    """
    1 to 100 characters, not only digits, unique ignoring case.
    """


class UpdateConversationsRequest(Model):
    excluded: bool | None = None
    """
    True excludes them: stored, but neither searched nor counted. False includes them again; they become blocked if the quota is reached.
    """
    ids: list[str]
    """
    The conversations to change; ids that do not exist are skipped.
    """
    pinned: bool | None = None


class UpdateMemoryRequest(Model):
    agent_id: str | None = None
    """
    The new agentId, with memoryId only; empty removes it. At most 256 bytes.
    """
    bucket_id: int | None = None
    """
    The bucket to move to.
    """
    bucket_name: str | None = None
    """
    The case-insensitive name of the bucket to move to. If bucketId is given as well, both must refer to the same bucket.
    """
    custom_metadata: dict[str, Any] | None = None
    """
    The new metadata, with memoryId only. It replaces the earlier object; {} removes it. At most 4,096 bytes.
    """
    memory_id: str | None = None
    """
    The memory to edit. Either memoryId or memoryIds is required.
    """
    memory_ids: list[str] | None = None
    """
    The memories to move, all or none.
    """
    run_id: str | None = None
    """
    The new runId, with memoryId only; empty removes it. At most 256 bytes.
    """
    tags: list[str] | None = None
    """
    The new tags, with memoryId only; they replace all earlier ones.
    """
    text: str | None = None
    """
    The new text, with memoryId only. At most 32,768 bytes.
    """


class UpdatedConversations(Model):
    count: int
    updated: list[str]
    """
    The ids that exist, in the order given.
    """


class UpdatedMemory(Model):
    memory_id: str | None = None
    """
    Set with memoryId.
    """
    memory_ids: list[str] | None = None
    """
    Set with memoryIds: the ids without duplicates.
    """
    message: str
    moved_count: int | None = None
    """
    Set with memoryIds: the number of memories moved.
    """
    version: int | None = None
    """
    Set with memoryId: the new version.
    """


class ConversationPage(Model):
    items: list[ConversationSummary]
    page: int
    page_size: int
    total: int
    total_pages: int


class CreatedMemory(Model):
    done: str
    is_duplicate: bool | None = None
    """
    True if the bucket already has a memory with exactly this text, agentId, runId, tags and customMetadata, or if the text is an existing memory as it was recalled: memoryId is that memory, and nothing was stored. Absent otherwise.
    """
    memory_id: str
    similar: list[SimilarMemory] | None = None
    """
    Existing memories that say nearly the same, most similar first. The new memory is stored; mergeMemories merges them into it. Absent if there are none.
    """


class FullMemory(Model):
    agent_id: str | None = None
    """
    The assistant that stored it.
    """
    custom_metadata: dict[str, Any] | None = None
    """
    The metadata that the client stored with the memory.
    """
    id: str
    merged: list[MergedMemory] | None = None
    """
    The memories that were merged into this one, those merged last first. Absent if there are none.
    """
    merged_count: int | None = None
    """
    The number of memories that were merged into this one. Absent if there are none.
    """
    merged_into: str | None = None
    """
    The memory into which this one was merged. Absent otherwise.
    """
    metadata: MemoryMetadata
    run_id: str | None = None
    """
    The session or run in which it was stored.
    """
    source: str
    superseded_by: str | None = None
    """
    The id of the newer memory that replaces this one. Both are kept.
    """
    supersedes: list[str] | None = None
    """
    The ids of the memories that this one replaces.
    """
    tags: list[str] | None = None
    """
    In alphabetical order.
    """
    text: str
    updated_at: AwareDatetime
    version: int
    """
    Starts at 1 and increases with each edit of the text.
    """


class Import(Model):
    blocked: int
    """
    Imported or updated conversations that are over quota: stored, but neither searched nor counted.
    """
    errors: list[ImportError]
    """
    The first 100 errors of conversations, and the error of the file.
    """
    failed: int
    file: str
    """
    The name of the file as it was sent; empty if it is unknown, and for an ingested conversation.
    """
    finished_at: AwareDatetime | None
    """
    Null until the import is done or failed.
    """
    import_id: str
    imported: int
    """
    New conversations.
    """
    indexed: int
    """
    Conversations that need no further embedding; it approaches total after the import is done. Failed, skipped and blocked conversations need none.
    """
    platform: str
    """
    Empty until it is detected.
    """
    skipped: int
    """
    Unchanged, empty and duplicate conversations.
    """
    started_at: AwareDatetime
    status: str
    """
    done means that all conversations are stored and searchable by keyword; embeddings follow.
    """
    total: int
    """
    The number of conversations in the file; 0 until counted. When done, it is the sum of imported, updated, skipped and failed.
    """
    unchanged: int
    """
    Skipped conversations that were already stored without changes.
    """
    updated: int
    """
    Existing conversations with new or changed messages.
    """
    warnings: list[str]
    """
    Content that was omitted or inferred.
    """


class ImportPage(Model):
    items: list[Import]
    page: int
    page_size: int
    total: int
    total_pages: int


class IngestConversation(Model):
    created_at: AwareDatetime
    id: str
    """
    The platform's id of the conversation. Sending it again adds new messages and replaces changed ones.
    """
    messages: list[IngestMessage]
    title: str
    updated_at: AwareDatetime | None = None
    """
    Defaults to the time of the newest message.
    """


class IngestRequest(Model):
    conversation: IngestConversation
    platform: str | None = None
    """
    The platform of the conversation; custom if absent or empty.
    """
    platform_display_name: str | None = None


class Ingested(Model):
    conversation: IngestedConversation
    conversation_id: str
    import_id: str
    platform: str
    queued: bool


class Memory(Model):
    agent_id: str | None = None
    """
    The assistant that stored it.
    """
    custom_metadata: dict[str, Any] | None = None
    """
    The metadata that the client stored with the memory.
    """
    id: str
    merged_count: int | None = None
    """
    The number of memories that were merged into this one. Absent if there are none.
    """
    metadata: MemoryMetadata
    run_id: str | None = None
    """
    The session or run in which it was stored.
    """
    score: float | None = None
    """
    With query: the probability that the memory is relevant. Comparable only within one response if X-Degraded is set.
    """
    superseded_by: str | None = None
    """
    The id of the newer memory that replaces this one. Both are kept.
    """
    supersedes: list[str] | None = None
    """
    The ids of the memories that this one replaces.
    """
    tags: list[str] | None = None
    """
    In alphabetical order.
    """
    text: str


class MemoryList(Model):
    buckets: list[Bucket]
    """
    All buckets of the user, regardless of the query.
    """
    memories: list[Memory]
    next_skip: int | None = None
    """
    The skip of the next page; absent on the last page.
    """


class QueryRecollection(Model):
    content: str
    model: str
    platform: str
    processing_time: str = Field(..., examples=["12.4ms"])
    query: str
    sources: list[RecallSource]
    token_count: int


class RecallRequest(Model):
    after: str | None = None
    """
    Only messages written at or after this ISO 8601 date or time.
    """
    before: str | None = None
    """
    Only messages written before this ISO 8601 time, or before the start of this date.
    """
    conversation_context: str | None = None
    """
    The topic of the current conversation, as context for a short question.
    """
    conversation_history: list[RecallTurn] | None = None
    """
    The last messages of the current conversation, as context for a short question.
    """
    include: list[str] | None = None
    """
    What to recall from; default chats.
    """
    max_tokens: float | None = None
    """
    The maximum length of the content in tokens, 1 to 2,000; default 600. Other values are clamped.
    """
    min_score: float | None = None
    """
    The score below which messages are omitted. By default, irrelevant messages are omitted, and the content is empty if nothing is relevant; 0 uses all. Not applied while the embedding model is unavailable: scores are not comparable then.
    """
    platform: str | None = None
    """
    A hint: only conversations of this platform. Ignored if absent, all, or without active conversations. Case does not matter; openai means chatgpt and anthropic means claude.
    """
    queries: list[RecallQuery] | None = None
    """
    Up to 15 questions, answered in one response.
    """
    query: str | None = None
    """
    A question in natural language, at most 8,192 bytes. Messages from a time it mentions, such as last May, are preferred. Either query or queries is required.
    """
    time_zone: str | None = None
    """
    The user's IANA time zone, such as Europe/Berlin, of times mentioned in a query, such as today or last May, and of dates and times without a zone; default UTC.
    """


class Recollection(Model):
    content: str | None = None
    """
    Cites its sources as [1], [2] and so on. Empty if nothing was found.
    """
    model: str | None = None
    """
    The chat model that wrote the content, or extractive if it consists of excerpts.
    """
    platform: str | None = None
    """
    The platform that was searched, or all: platform is a hint, which is ignored without active conversations of it.
    """
    processing_time: str = Field(..., examples=["12.4ms"])
    results: list[QueryRecollection] | None = None
    """
    Only with `queries`, instead of the other properties: one result per query, in order.
    """
    sources: list[RecallSource] | None = None
    token_count: int | None = None
    """
    The length of the content in tokens, at most maxTokens.
    """


class AnyResult(Model):
    memory: Memory | None = None
    """
    Present for type memory.
    """
    passage: SearchResult | None = None
    """
    Present for type chat.
    """
    score: float
    """
    The probability that the result is relevant. Comparable only within results of one type if X-Degraded is set.
    """
    type: str


class AllResults(Model):
    processing_time: float
    """
    Milliseconds.
    """
    query: str
    results: list[AnyResult]
    """
    Best match first.
    """
    total_results: int
