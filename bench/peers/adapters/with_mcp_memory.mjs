// The reference memory server of MCP, spoken to as agents do: over stdio. What it spends is what the server process spends.
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { serve } from "./orders.mjs";

const packages = createRequire(join(process.env.PEER_PACKAGES, "package.json"));
const load = async (name) => import(pathToFileURL(packages.resolve(name)).href);
const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = await load("@modelcontextprotocol/sdk/client/stdio.js");

const tasks = (pid) => `/proc/${pid}/task`;
const nanoseconds = (pid, task) => Number(readFileSync(`${tasks(pid)}/${task}/schedstat`, "utf8").split(" ")[0]);

serve(async (folder) => {
  const server = join(process.env.PEER_PACKAGES, "node_modules/@modelcontextprotocol/server-memory/dist/index.js");
  const env = { ...process.env, MEMORY_FILE_PATH: join(folder, "memory.jsonl") };
  const transport = new StdioClientTransport({ command: process.execPath, args: [server], env, stderr: "ignore" });
  const client = new Client({ name: "bench", version: "1" });
  await client.connect(transport, { timeout: 600_000 });
  const call = (name, given) => client.callTool({ name, arguments: given }, undefined, { timeout: 600_000 });
  const entity = ([name, text]) => ({ name, entityType: "note", observations: [text] });
  return {
    pid: transport.pid,
    close: () => client.close(),
    cpu_ms: () => readdirSync(tasks(transport.pid)).reduce((sum, task) => sum + nanoseconds(transport.pid, task), 0) / 1e6,
    load: async (rows) => { await call("create_entities", { entities: rows.map(entity) }); },
    add: async (name, text) => { await call("create_entities", { entities: [entity([name, text])] }); },
    query: async (text) => {
      const found = await call("search_nodes", { query: text });
      return JSON.parse(found.content[0].text).entities.slice(0, 5).map((one) => one.name);
    },
  };
});
