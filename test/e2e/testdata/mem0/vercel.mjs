// @mem0/vercel-ai-provider: its functions, and a model behind a local endpoint that repeats
// what it was asked.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { addMemories, createMem0, getMemories, retrieveMemories, searchMemories } from "@mem0/vercel-ai-provider";
import { generateText } from "ai";

const config = { user_id: "hana", mem0ApiKey: process.env.MNEMO_API_KEY, host: process.env.MNEMO_URL + "/mem0" };
await addMemories([{ role: "user", content: [{ type: "text", text: "Hana rides a blue bicycle." }] }], { ...config, infer: false });
assert.match(await retrieveMemories("What does Hana ride?", config), /Memory: Hana rides a blue bicycle\./);
assert.deepEqual((await getMemories("bicycle", config)).map((m) => m.memory), ["Hana rides a blue bicycle."]);
assert.equal((await searchMemories("bicycle", { ...config, user_id: "nobody" })).results.length, 0);

let asked = "";
const model = createServer((req, res) => {
  req.on("data", (d) => { asked += d; });
  req.on("end", () => {
    res.setHeader("Content-Type", "application/json");
    res.end(JSON.stringify({ id: "r", object: "response", created_at: 1, model: "parrot", status: "completed", output: [
      { type: "message", id: "m", role: "assistant", status: "completed", content: [{ type: "output_text", text: "A bicycle.", annotations: [] }] }],
      usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 } }));
  });
});
await new Promise((ready) => model.listen(0, "127.0.0.1", ready));
const mem0 = createMem0({ provider: "openai", mem0ApiKey: config.mem0ApiKey, apiKey: "none", mem0Config: config,
  config: { baseURL: `http://127.0.0.1:${model.address().port}/v1` } });
const { text } = await generateText({ model: mem0("parrot", { user_id: "hana" }), prompt: "What does Hana ride?" });
model.close();
assert.equal(text, "A bicycle.");
assert.match(asked, /Hana rides a blue bicycle/);
const response = await fetch(config.host + "/v1/memories/?user_id=hana", { method: "DELETE", headers: { Authorization: `Token ${config.mem0ApiKey}` } });
assert.equal(response.status, 200);
