// mnemoTools with the package ai and its simulated model.
import assert from "node:assert/strict";
import test from "node:test";

import { generateText, isStepCount } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { Mnemo } from "mnemo-client";
import { mnemoTools } from "mnemo-client/ai-sdk";

const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };

function call(toolName, input) {
  const content = [{ type: "tool-call", toolCallId: toolName, toolName, input: JSON.stringify(input) }];
  return { content, finishReason: { unified: "tool-calls" }, usage, warnings: [] };
}

test("a model stores and finds memories and conversations", async () => {
  const client = new Mnemo();
  const stored = await client.chats.ingest([{ role: "user", content: "The dentist is Doctor Silva in Porto." }]);
  const results = [
    call("storeMemory", { text: "2026-06-01 The user plays the harpsichord." }),
    call("searchMemories", { query: "which instrument does the user play" }),
    call("recallChats", { query: "who is my dentist" }),
    { content: [{ type: "text", text: "Done." }], finishReason: { unified: "stop" }, usage, warnings: [] },
  ];
  const model = new MockLanguageModelV4({ doGenerate: async () => results.shift() });
  const { steps, text } = await generateText({ model, tools: mnemoTools(client), stopWhen: isStepCount(5), prompt: "Hello" });
  assert.equal(text, "Done.");
  const outputs = steps.flatMap((s) => s.toolResults).map((r) => r.output);
  assert.match(outputs[1][0].text, /harpsichord/);
  assert.match(outputs[2].content, /Silva/);
  assert.equal(outputs[2].sources[0].conversationId, stored.conversationId);
  await client.memories.delete(outputs[0].memoryId);
  await client.chats.delete([stored.conversationId]);
});
