import createClient from "openapi-fetch";
import type { paths } from "./generated";

async function main() {
  const client = createClient<paths>({
    baseUrl: process.env.MNEMO_URL!,
    headers: { Authorization: `Bearer ${process.env.MNEMO_TOKEN}` },
  });
  const text = process.env.MNEMO_TEXT!;
  await client.POST("/api/memory", { body: { text } });
  const { data: found } = await client.GET("/api/v2/memory", { params: { query: { query: text, count: 1, all: false } } });
  const { data: chats } = await client.GET("/api/chat-history/chats", { params: { query: { page: 1, pinnedOnly: false } } });
  const { data: recalled } = await client.POST("/api/chat-history/recall", { body: { query: text, maxTokens: 100 } });
  console.log(found!.memories[0].text, chats!.total, recalled!.model);
}

main();
