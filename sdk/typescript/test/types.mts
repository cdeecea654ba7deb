// The public types under exactOptionalPropertyTypes, and the tools with each version of ai that is a peer.
import { generateText, streamText, type ToolSet } from "ai";
import { Mnemo } from "mnemo-client";
import { mnemoTools } from "mnemo-client/ai-sdk";

type Element<T> = T extends readonly (infer E)[] ? E : T;

/** The optional properties of T that must not be undefined. */
type Refusing<T> = {
  [K in keyof T]-?: string extends K ? never : {} extends Pick<T, K> ? (undefined extends Required<T>[K] ? never : K) : never;
}[keyof T];

/** The names of the optional properties of the arguments of a function that must not be undefined. */
type RefusingArguments<F> = F extends (...args: infer A) => unknown
  ? Element<A[number]> extends infer E
    ? E extends object
      ? Refusing<E>
      : never
    : never
  : never;

type RefusingMethods<C> = { [M in keyof C]: RefusingArguments<C[M]> }[keyof C];

function accepts<_ extends never>(): void {}

accepts<Refusing<NonNullable<ConstructorParameters<typeof Mnemo>[0]>>>();
accepts<RefusingMethods<Mnemo> | { [K in keyof Mnemo]: RefusingMethods<Mnemo[K]> }[keyof Mnemo]>();
accepts<RefusingArguments<typeof mnemoTools>>();

const tools = mnemoTools(new Mnemo({ apiKey: process.env["MNEMO_API_KEY"] }));
export const all: ToolSet = tools;

export async function answer(prompt: string): Promise<string | undefined> {
  const { toolResults } = await generateText({ model: "provider/model", tools, prompt });
  const found = toolResults.find((r) => !r.dynamic && r.toolName === "searchMemories");
  streamText({ model: "provider/model", tools: { ...tools }, prompt });
  return found && (await tools.searchMemories.execute({ query: prompt }))[0]?.text;
}
