// mem0ai 2, which calls the earlier versions of the routes.
import assert from "node:assert/strict";
import { MemoryClient } from "mem0ai-v2";

const client = new MemoryClient({ apiKey: process.env.MNEMO_API_KEY, host: process.env.MNEMO_URL + "/mem0" });
const [{ id }] = await client.add([{ role: "user", content: "Gina speaks Danish." }], { user_id: "gina", infer: false });
for (const options of [{ user_id: "gina" }, { api_version: "v2", filters: { user_id: "gina" } }]) {
  assert.deepEqual((await client.search("Which language?", options)).map((m) => m.id), [id]);
  assert.deepEqual((await client.getAll(options)).map((m) => m.id), [id]);
  assert.equal((await client.getAll({ ...options, page: 1, page_size: 10 })).count, 1);
}
await client.update(id, { text: "Gina speaks Finnish." });
assert.equal((await client.history(id)).length, 2);
await client.deleteUser({ entity_id: "gina", entity_type: "user" });
await assert.rejects(client.get(id));
