// A Cloudflare Worker that runs the scenarios.
import { run } from "./runner.js";

export default {
  async fetch(request) {
    const { name, options } = await request.json();
    return Response.json(await run(name, options));
  },
};
