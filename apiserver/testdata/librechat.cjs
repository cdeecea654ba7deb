// Reads librechat.yaml from standard input, validates it with LibreChat's schema and prints it as JSON.
// usage: librechat.cjs NODE_MODULES
const { readFileSync } = require("node:fs");
const { isDeepStrictEqual } = require("node:util");

const [modules] = process.argv.slice(2);
const yaml = require(`${modules}/js-yaml`);
const { configSchema, Constants } = require(`${modules}/librechat-data-provider`);

const settings = { version: Constants.CONFIG_VERSION, ...yaml.load(readFileSync(0, "utf8")) };
const { mcpServers } = configSchema.strict().parse(settings);
// The schema drops unknown members.
if (!isDeepStrictEqual(mcpServers, settings.mcpServers)) throw new Error(`LibreChat reads ${JSON.stringify(mcpServers)}`);
console.log(JSON.stringify({ mcpServers }));
