// MiniSearch: an index in the memory of the process, which is read from a file at the start and written after each add.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createRequire } from "node:module";
import { serve } from "./orders.mjs";

const MiniSearch = createRequire(join(process.env.PEER_PACKAGES, "package.json"))("minisearch");
const options = { fields: ["text"], storeFields: ["text"], searchOptions: { prefix: true, fuzzy: 0.2, combineWith: "OR" } };

serve((folder) => {
  const file = join(folder, "index.json");
  const index = existsSync(file) ? MiniSearch.loadJSON(readFileSync(file, "utf8"), options) : new MiniSearch(options);
  const save = () => writeFileSync(file, JSON.stringify(index));
  return {
    load: (rows) => { index.addAll(rows.map(([id, text]) => ({ id, text }))); save(); },
    add: (id, text) => { index.add({ id, text }); save(); },
    query: (text) => index.search(text).slice(0, 5).map((hit) => hit.id),
  };
});
