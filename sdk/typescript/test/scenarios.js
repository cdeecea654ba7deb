// The client against the server at MNEMO_URL, for node --test and for browsers.

/** Throws unless a condition is true. */
export function check(condition, message) {
  if (!condition) throw new Error(message);
}

const conversation = {
  uuid: "sdk-typescript",
  name: "Night train",
  created_at: "2025-05-09T14:30:00Z",
  updated_at: "2025-05-09T14:31:00Z",
  chat_messages: [
    { uuid: "a", sender: "human", text: "Which seat on the night train to Vienna?", created_at: "2025-05-09T14:30:00Z" },
    { uuid: "b", sender: "assistant", text: "A window seat.", created_at: "2025-05-09T14:30:05Z" },
  ],
};

export const scenarios = {
  async memories({ client, NotFoundError, name }) {
    const created = await client.memories.create(`2026-05-03 I adopted a grey cat called Miso (${name}).`);
    const found = await client.memories.search(`which cat called Miso did I adopt (${name})`, { limit: 3 });
    check(found.some((m) => m.id === created.memoryId), "the memory was not found");
    const updated = await client.memories.update(created.memoryId, { text: `2026-05-03 Miso is black (${name}).` });
    check(updated.version === 2, `version ${updated.version}`);
    const versions = await Array.fromAsync(client.memories.versions(created.memoryId, { pageSize: 1 }));
    check(versions.map((v) => v.version).join() === "2,1", "versions");
    await client.memories.delete(created.memoryId);
    const error = await client.memories.get(created.memoryId).catch((e) => e);
    check(error instanceof NotFoundError && error.code === "not_found" && error.name === "NotFoundError", String(error));
  },

  async merges({ client, name }) {
    const old = (await client.memories.create(`2026-05-04 My cat Miso likes tuna (${name})`)).memoryId;
    const kept = (await client.memories.create(`2026-05-04 My cat Miso likes tuna best (${name})`)).memoryId;
    check((await client.memories.merge(kept, [old])).mergedCount === 1, "merged");
    check((await client.memories.get(kept)).merged[0].memoryId === old, "the merged memory is not listed");
    check((await client.memories.get(old)).mergedInto === kept, "mergedInto");
    check((await client.memories.unmerge(kept)).memoryIds.join() === old, "restored");
    check((await client.memories.deleteMany([old, kept])).deletedCount === 2, "deleted");
  },

  async filters({ client, name }) {
    const metadata = { year: 2026 };
    const paris = await client.memories.create(`2026-06-01 Booked a hotel in Paris (${name})`, { tags: [name], agentId: "planner", metadata });
    const filter = { tags: name, "metadata.year": { gte: 2024 } };
    const found = await client.memories.search("hotel", { filter });
    check(found.map((m) => m.id).join() === paris.memoryId, "search");
    check((await Array.fromAsync(client.memories.list({ filter }))).length === 1, "list");
    check((await client.search("hotel", { filter }))[0].memory.customMetadata.year === 2026, "search of both");
    await client.memories.update(paris.memoryId, { tags: ["work"] });
    check((await client.memories.search("hotel", { filter })).length === 0, "updated");
    await client.memories.delete(paris.memoryId);
  },

  async pages({ client, name }) {
    const bucket = await client.buckets.create(`Pages ${name}`);
    const ids = [];
    for (let i = 1; i <= 5; i++) {
      ids.push((await client.memories.create(`2026-01-0${i} Fact number ${i} (${name})`, { bucket: bucket.id })).memoryId);
    }
    const listed = await Array.fromAsync(client.memories.list({ bucket: bucket.id, pageSize: 2 }));
    check(listed.map((m) => m.id).join() === ids.join(), "order");
    const found = await client.memories.search("which facts are there", { bucket: bucket.id, limit: 5, minScore: 0 });
    check(found.length === 5, `${found.length} results`);
    check((await client.buckets.list()).find((b) => b.id === bucket.id).memoryCount === 5, "count");
    await client.buckets.update(bucket.id, { name: `Renamed ${name}` });
    check((await client.memories.move(ids.slice(0, 2), { bucketName: "General" })).movedCount === 2, "moved");
    check((await client.buckets.delete(bucket.id)).movedCount === 3, "moved by deletion");
    check((await client.memories.deleteMany(ids)).deletedCount === 5, "deleted");
  },

  async chats({ client, ImportFailedError, name }) {
    const messages = [
      { role: "user", content: `Where should ${name} go in May?` },
      { role: "assistant", content: "Lisbon is warm and not yet crowded in May." },
    ];
    const stored = await client.chats.ingest(messages, { title: `Trip of ${name}` });
    const read = await client.chats.get(stored.conversationId);
    check(read.messages.map((m) => m.sender).join() === "human,assistant", "senders");
    const found = await client.chats.search("which city is warm in May", { limit: 20 });
    check(found.some((r) => r.conversationId === stored.conversationId), "the conversation was not found");
    const recalled = await client.chats.recall("where should we travel in May", { maxTokens: 200 });
    check(recalled.content.includes("Lisbon"), recalled.content);
    check((await client.search("which city is warm in May")).some((r) => r.type === "chat"), "search");
    await client.chats.update([stored.conversationId], { pinned: true });
    const pinned = await Array.fromAsync(client.chats.list({ pinnedOnly: true, title: name, pageSize: 1 }));
    check(pinned.some((c) => c.id === stored.conversationId), "pinned");
    check((await client.chats.count()) > 0, "count");
    check((await client.chats.delete([stored.conversationId])).count === 1, "deleted");
    const long = [{ role: "user", content: "word ".repeat(100_001) }];
    const failed = await client.chats.ingest(long, { conversationId: `too-long-${name}` }).catch((e) => e);
    check(failed instanceof ImportFailedError && failed.message.includes("more than 100000 tokens"), `a long conversation: ${failed}`);
  },

  async imports({ client, ImportFailedError, name }) {
    const file = new Blob([JSON.stringify([{ ...conversation, uuid: `sdk-${name}` }])]);
    const { importId } = await client.imports.create(file, { platform: "claude", name: "conversations.json" });
    const states = await Array.fromAsync(client.imports.follow(importId));
    const last = states.at(-1);
    check(last.status === "done" && last.imported === 1 && last.indexed === 1, JSON.stringify(last));
    check((await client.imports.wait(importId, { indexed: true })).imported === 1, "wait");
    check((await Array.fromAsync(client.imports.list())).some((i) => i.importId === importId), "list");
    const zip = await new Response(await client.account.export()).arrayBuffer();
    check(new TextDecoder().decode(zip.slice(0, 2)) === "PK", "the export is not a zip file");
    const files = [{ file, name: "first.json" }, { file: new File(["not an export"], "second.json") }];
    const [first, second] = await client.imports.createMany(files, { platform: "claude" });
    check(first.file === "first.json" && second.file === "second.json", "names of files");
    check((await client.imports.wait(first.importId)).unchanged === 1, "the first file");
    const failed = await client.imports.wait(second.importId).catch((e) => e);
    check(failed instanceof ImportFailedError, `the second file: ${failed}`);
    const chats = await Array.fromAsync(client.chats.list({ importId }));
    check((await client.chats.delete(chats.map((c) => c.id))).count === 1, "deleted");
  },

  async errors({ client, BadRequestError, NotFoundError, ConflictError, name }) {
    const blank = await client.memories.create("").catch((e) => e);
    check(blank instanceof BadRequestError && blank.status === 400 && blank.code === "invalid", String(blank));
    check(blank.requestId, "no request id");
    const unknown = await client.memories.move(["unknown"], { bucketName: "General" }).catch((e) => e);
    check(unknown instanceof NotFoundError && unknown.rejectedIds.join() === "unknown", String(unknown));
    const idempotencyKey = `sdk-typescript-${name}`;
    const first = await client.memories.create(`2026-02-02 Same key (${name})`, { idempotencyKey });
    const second = await client.memories.create(`2026-02-02 Same key (${name})`, { idempotencyKey });
    check(first.memoryId === second.memoryId && !second.isDuplicate, "repeated");
    const reused = await client.memories.create("2026-02-02 Other text", { idempotencyKey }).catch((e) => e);
    check(reused instanceof ConflictError && reused.code === "idempotency_key_reused", String(reused));
    await client.memories.delete(first.memoryId);
  },
};
