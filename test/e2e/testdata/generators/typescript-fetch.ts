import { ChatHistoryApi, Configuration, MemoriesApi } from "./generated";

async function main() {
  const configuration = new Configuration({ basePath: process.env.MNEMO_URL!, accessToken: process.env.MNEMO_TOKEN! });
  const memories = new MemoriesApi(configuration);
  const history = new ChatHistoryApi(configuration);
  const text = process.env.MNEMO_TEXT!;
  await memories.createMemory({ createMemoryRequest: { text } });
  const found = await memories.listMemoriesV2({ query: text, count: 1, all: false });
  const chats = await history.listConversations({ page: 1, pinnedOnly: false });
  const recalled = await history.recall({ recallRequest: { query: text, maxTokens: 100 } });
  console.log(found.memories[0].text, chats.total, recalled.model);
}

main();
