// The notices of the packages whose code is in the bundle, and of no other.
import { readFile, readdir } from "node:fs/promises";
import { resolve } from "node:path";
import { WEB } from "./settings.mjs";

const NOTICE = /^(licen[cs]e|notice|copying)/i;
// What a package has of others, and texts that its notice refers to.
const MORE = { "@novnc/novnc": ["docs/LICENSE.MPL-2.0", "vendor/pako/LICENSE"] };
const HEAD = `The web console contains code of these packages. Each stands under its own license.
Files under the Mozilla Public License are unchanged; their source is the package at registry.npmjs.org.
`;

export async function notices(metafile) {
  const parts = [HEAD];
  for (const name of packages(metafile)) {
    const folder = resolve(WEB, "node_modules", name);
    const about = JSON.parse(await readFile(resolve(folder, "package.json"), "utf8"));
    const found = [...(await readdir(folder)).filter((file) => NOTICE.test(file)).sort(), ...(MORE[name] ?? [])];
    const texts = await Promise.all(found.map((file) => readFile(resolve(folder, file), "utf8")));
    if (!texts.length) throw new Error(`${name} has no license file; add its text by hand`);
    parts.push([`${about.name} ${about.version} (${about.license})`, ...texts.map((text) => text.trim())].join("\n\n"));
  }
  return `${parts.join(`\n${"-".repeat(80)}\n\n`)}\n`;
}

/** The packages of which something came into an output. */
function packages(metafile) {
  const names = new Set();
  for (const output of Object.values(metafile.outputs)) {
    for (const path of Object.keys(output.inputs)) {
      const match = /(?:^|:)node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path.replace(/^.*\/node_modules\//, "node_modules/"));
      if (match) names.add(match[1]);
    }
  }
  return [...names].sort();
}
