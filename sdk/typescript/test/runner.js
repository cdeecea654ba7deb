// Runs the scenarios in runtimes without node --test, and returns the failures.
import * as mnemo from "mnemo-client";

import { scenarios } from "./scenarios.js";

export async function run(name, options) {
  const failures = [];
  for (const [title, scenario] of Object.entries(scenarios)) {
    try {
      await scenario({ client: new mnemo.Mnemo(options), name, ...mnemo });
    } catch (e) {
      failures.push(`${title}: ${e.stack ?? e}`);
    }
  }
  return { ran: Object.keys(scenarios), failures };
}
