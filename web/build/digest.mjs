// A digest of everything that the page is built from. A test in Python compares it with the files, so that a forgotten build
// fails even where there is no node.
import { createHash } from "node:crypto";
import { readFile, readdir, stat } from "node:fs/promises";
import { relative, resolve, sep } from "node:path";
import { WEB } from "./settings.mjs";

export const DIGEST = resolve(WEB, "sources.sha256");
const PARTS = ["src", "build", "package.json", "package-lock.json"];

export async function digest() {
  const files = [];
  for (const part of PARTS) {
    const path = resolve(WEB, part);
    if (!(await stat(path)).isDirectory()) files.push(path);
    else for (const each of await readdir(path, { recursive: true, withFileTypes: true })) if (each.isFile()) files.push(resolve(each.parentPath ?? each.path, each.name));
  }
  const names = files.map((path) => relative(WEB, path).split(sep).join("/")).sort();
  const hash = createHash("sha256");
  for (const name of names) hash.update(`${name}\0`).update(createHash("sha256").update(await readFile(resolve(WEB, name))).digest("hex")).update("\n");
  return `${hash.digest("hex")}\n`;
}
