// Builds the page in memory: file names with their bytes.
import { readFile } from "node:fs/promises";
import { basename, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import esbuild from "esbuild";
import { notices } from "./licenses.mjs";
import { WEB, options } from "./settings.mjs";

/** The most that the first page may take over the wire, in bytes. */
export const FIRST_PAGE_LIMIT = 60 * 1024;

/** Return `files` (name to bytes) and `first` (names that the first page loads). */
export async function bundle(changes = {}) {
  const result = await esbuild.build({ ...options, ...changes });
  const files = new Map(result.outputFiles.map((file) => [basename(file.path), Buffer.from(file.contents)]));
  const outputs = result.metafile.outputs;
  const script = Object.keys(outputs).find((path) => outputs[path].entryPoint === "src/main.tsx");
  const sheet = outputs[script].cssBundle;
  const template = await readFile(resolve(WEB, "src/index.html"), "utf8");
  const scripts = [...staticImports(script, outputs)];
  // One round for all of them, instead of one for each level of imports.
  const ahead = scripts.filter((path) => path !== script).map((path) => `<link rel="modulepreload" href="${basename(path)}">\n`);
  const page = template.replace("{{script}}", basename(script)).replace("{{sheet}}", basename(sheet)).replace("{{ahead}}\n", ahead.join(""));
  files.set("index.html", Buffer.from(page));
  files.set("licenses.txt", Buffer.from(await notices(result.metafile)));
  const first = ["index.html", basename(sheet), ...scripts.map((path) => basename(path))];
  return { files: new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1))), first };
}

/** All scripts that a script needs before it runs, and itself. */
function staticImports(start, outputs) {
  const found = new Set([start]);
  for (const path of found) {
    for (const each of outputs[path].imports) {
      if (each.kind === "import-statement" && outputs[each.path]) found.add(each.path);
    }
  }
  return found;
}

export const compressed = (bytes) => gzipSync(bytes, { level: 9 }).length;
