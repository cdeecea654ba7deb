import { client } from "./generated/client.gen";
import { createMemory, listConversations, listMemoriesV2, recall } from "./generated/sdk.gen";

async function main() {
  client.setConfig({ baseUrl: process.env.MNEMO_URL!, auth: () => process.env.MNEMO_TOKEN! });
  const text = process.env.MNEMO_TEXT!;
  await createMemory({ body: { text }, throwOnError: true });
  const { data: found } = await listMemoriesV2({ query: { query: text, count: 1, all: false }, throwOnError: true });
  const { data: chats } = await listConversations({ query: { page: 1, pinnedOnly: false }, throwOnError: true });
  const { data: recalled } = await recall({ body: { query: text, maxTokens: 100 }, throwOnError: true });
  console.log(found.memories[0].text, chats.total, recalled.model);
}

main();
