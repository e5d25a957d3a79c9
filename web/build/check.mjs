// Compares the committed assets with what the sources build, byte for byte. Writes nothing.
import { readFile, readdir } from "node:fs/promises";
import { resolve } from "node:path";
import { bundle } from "./bundle.mjs";
import { DIGEST, digest } from "./digest.mjs";
import { ASSETS } from "./settings.mjs";

const { files } = await bundle();
const committed = new Set(await readdir(ASSETS).catch(() => []));
const problems = [];
for (const [name, bytes] of files) {
  if (!committed.delete(name)) problems.push(`${name} is missing`);
  else if (!bytes.equals(await readFile(resolve(ASSETS, name)))) problems.push(`${name} differs`);
}
for (const name of committed) problems.push(`${name} is not built any more`);
if ((await digest()) !== (await readFile(DIGEST, "utf8").catch(() => ""))) problems.push("web/sources.sha256 is older than the sources");
if (problems.length) {
  console.error(`src/paddock/web/assets is not what web/ builds; run “make web”:\n  ${problems.join("\n  ")}`);
  process.exit(1);
}
console.log(`${files.size} assets are what web/ builds`);
