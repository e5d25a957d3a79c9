// Bundles web/test/**/*.test.ts for node and runs them with node's own test runner.
import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { resolve } from "node:path";
import esbuild from "esbuild";
import { WEB, options } from "./settings.mjs";

const names = (await readdir(resolve(WEB, "test"), { recursive: true })).filter((name) => name.endsWith(".test.ts") || name.endsWith(".test.tsx"));
const out = await mkdtemp(resolve(WEB, "node_modules/.test-"));
await esbuild.build({
  ...options,
  entryPoints: names.map((name) => `test/${name}`),
  entryNames: "[dir]/[name]",
  outbase: resolve(WEB, "test"),
  outdir: out,
  write: true,
  minify: false,
  sourcemap: "inline",
  platform: "node",
  splitting: true,
  outExtension: { ".js": ".mjs" },
});
const built = names.map((name) => resolve(out, name.replace(/\.tsx?$/, ".mjs")));
const { status } = spawnSync(process.execPath, ["--enable-source-maps", "--test", ...built], { stdio: "inherit" });
await rm(out, { recursive: true });
process.exit(status ?? 1);
