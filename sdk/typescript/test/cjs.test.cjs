const test = require("node:test");

const mnemo = require("mnemo-client");

test("CommonJS", async (t) => {
  const { scenarios } = await import("./scenarios.js");
  for (const [title, run] of Object.entries(scenarios)) {
    await t.test(title, () => run({ client: new mnemo.Mnemo(), name: "cjs", ...mnemo }));
  }
});
