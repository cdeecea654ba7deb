// mem0ai's MemoryClient with a user's token: every method.
import assert from "node:assert/strict";
import { MemoryClient } from "mem0ai";

const host = process.env.MNEMO_URL + "/mem0";
const client = new MemoryClient({ apiKey: process.env.MNEMO_API_KEY, host });
await client.ping();
await assert.rejects(new MemoryClient({ apiKey: "wrong", host }).get("x"), /a valid token is required/);

const added = await client.add([{ role: "user", content: "Dora plays the violin." }],
  { userId: "dora", agentId: "coach", metadata: { level: 3 }, infer: false });
const id = added.results[0].id;
assert.equal(added.results[0].event, "ADD");
await client.add([{ role: "user", content: "Emil plays the piano." }], { userId: "emil", infer: false });

const memory = await client.get(id);
assert.deepEqual([memory.memory, memory.userId, memory.agentId, memory.metadata], ["Dora plays the violin.", "dora", "coach", { level: 3 }]);
const found = await client.search("Which instrument?", { filters: { user_id: "dora" }, topK: 5, threshold: 0 });
assert.deepEqual(found.results.map((m) => m.id), [id]);
const page = await client.getAll({ filters: { AND: [{ user_id: "*" }, { metadata: { level: { gt: 2 } } }] }, page: 1, pageSize: 10 });
assert.deepEqual([page.count, page.next, page.results.map((m) => m.id)], [1, null, [id]]);
await client.update(id, { text: "Dora plays the cello." });
assert.deepEqual((await client.history(id)).map((h) => [h.event, h.oldMemory, h.newMemory]),
  [["ADD", null, "Dora plays the violin."], ["UPDATE", "Dora plays the violin.", "Dora plays the cello."]]);
await client.batchUpdate([{ memoryId: id, text: "Dora plays the flute." }]);
assert.equal((await client.get(id)).memory, "Dora plays the flute.");
assert.deepEqual((await client.users()).results.map((e) => [e.type, e.name, e.totalMemories]),
  [["agent", "coach", 1], ["user", "dora", 1], ["user", "emil", 1]]);
await client.batchDelete([id]);
await assert.rejects(client.get(id), /memory not found/);
await client.deleteAll({ userId: "emil" });
const last = (await client.add([{ role: "user", content: "Finn plays the drums." }], { userId: "finn", infer: false })).results[0].id;
await client.delete(last);
await client.add([{ role: "user", content: "Finn plays the drums." }], { userId: "finn", infer: false });
await client.deleteUsers({ userId: "finn" });
assert.equal((await client.getAll({ filters: { user_id: "*" } })).count, 0);
