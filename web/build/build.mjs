// Writes the page into src/paddock/web/assets and prints what it weighs.
import { mkdir, rm, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { FIRST_PAGE_LIMIT, bundle, compressed } from "./bundle.mjs";
import { DIGEST, digest } from "./digest.mjs";
import { ASSETS } from "./settings.mjs";

const { files, first } = await bundle();
await rm(ASSETS, { recursive: true, force: true });
await mkdir(ASSETS, { recursive: true });
for (const [name, bytes] of files) await writeFile(resolve(ASSETS, name), bytes);
await writeFile(DIGEST, await digest());

const kilobytes = (bytes) => `${(bytes / 1024).toFixed(1)} kB`.padStart(10);
for (const [name, bytes] of files) {
  console.log(`${name.padEnd(34)}${kilobytes(bytes.length)}${kilobytes(compressed(bytes))} gzip${first.includes(name) ? "  first page" : ""}`);
}
const total = first.reduce((sum, name) => sum + compressed(files.get(name)), 0);
console.log(`first page: ${kilobytes(total).trim()} compressed, limit ${kilobytes(FIRST_PAGE_LIMIT).trim()}`);
if (total > FIRST_PAGE_LIMIT) {
  console.error("The first page is too large. Load what it does not need at once with import().");
  process.exit(1);
}
