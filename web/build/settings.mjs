// The one description of the build, shared by the build, its check and the development server.
import { readFile } from "node:fs/promises";
import { dirname, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import esbuild from "esbuild";

export const WEB = resolve(dirname(fileURLToPath(import.meta.url)), "..");
export const ASSETS = resolve(WEB, "../src/paddock/web/assets");

// Hashes cover the names of inputs: an absolute one would make a build depend on the directory that it runs in.
const FIRST = resolve(WEB, "src/app/app.tsx");
const named = (path) => relative(WEB, path).split(sep).join("/");

/** `import address from "./x.css?sheet"`: the style sheet becomes a file of its own, and the import its address. */
const sheets = {
  name: "sheets",
  setup(build) {
    build.onResolve({ filter: /\?sheet$/ }, async (args) => {
      const found = await build.resolve(args.path.slice(0, -"?sheet".length), {
        kind: "import-statement",
        resolveDir: args.resolveDir,
      });
      return found.errors.length ? { errors: found.errors } : { path: named(found.path), namespace: "sheet" };
    });
    build.onLoad({ filter: /.*/, namespace: "sheet" }, async (args) => {
      const source = await readFile(resolve(WEB, args.path), "utf8");
      const { code } = await esbuild.transform(source, { loader: "css", minify: true, target: "es2022" });
      return { contents: code, loader: "file", watchFiles: [resolve(WEB, args.path)] };
    });
  },
};

/**
 * A module that loads later imports the whole first page, which is there by then. Modules that both need would otherwise be a file for
 * each set of pages that shares them: the first page would have to fetch two dozen.
 */
const later = {
  name: "later",
  setup(build) {
    const paths = new Set();
    build.onResolve({ filter: /^\.{1,2}\// }, async (args) => {
      if (args.kind !== "dynamic-import" || args.pluginData === later) return null;
      const found = await build.resolve(args.path, { kind: args.kind, resolveDir: args.resolveDir, importer: args.importer, pluginData: later });
      paths.add(found.path);
      return found;
    });
    build.onLoad({ filter: /[\\/]src[\\/].*\.tsx?$/ }, async (args) => {
      if (!paths.has(args.path)) return null;
      const first = relative(dirname(args.path), FIRST).split(sep).join("/");
      return { contents: `import "./${first}";\n${await readFile(args.path, "utf8")}`, loader: args.path.endsWith("x") ? "tsx" : "ts" };
    });
  },
};

/** Names carry a hash of the content, so the server can let browsers keep them for ever. */
export const options = {
  absWorkingDir: WEB,
  entryPoints: { console: "src/main.tsx" },
  outdir: "out",
  write: false,
  bundle: true,
  splitting: true,
  format: "esm",
  target: "es2022",
  minify: true,
  sourcemap: false,
  charset: "utf8",
  // All notices stand in licenses.txt.
  legalComments: "none",
  metafile: true,
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  assetNames: "[name]-[hash]",
  jsx: "automatic",
  jsxImportSource: "preact",
  loader: { ".svg": "file", ".woff2": "file" },
  define: { "process.env.NODE_ENV": '"production"' },
  plugins: [sheets, later],
  logLevel: "warning",
};
