// The console without a server behind it: `npm run dev -- [--machines N] [--port N] [--built]`.
// It builds the page anew for each visit, and answers the API with plausible data. Nothing of it is shipped.
import { existsSync } from "node:fs";
import { readFile, readdir } from "node:fs/promises";
import { createServer } from "node:http";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { bundle } from "../build/bundle.mjs";
import { ASSETS } from "../build/settings.mjs";
import { MockApi } from "./api.mjs";
import { accept, serial } from "./sockets.mjs";

const { values } = parseArgs({
  options: { machines: { type: "string", default: "1000" }, port: { type: "string", default: "8099" }, built: { type: "boolean", default: false } },
});

// The same policy as that of the real server, so that what it forbids fails here, too.
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; " +
  "form-action 'none'; frame-ancestors 'none'; base-uri 'none'";
const TYPES = { html: "text/html; charset=utf-8", js: "text/javascript; charset=utf-8", css: "text/css; charset=utf-8", txt: "text/plain; charset=utf-8", svg: "image/svg+xml", woff2: "font/woff2" };

const api = new MockApi(Number(values.machines));
let files = new Map();

async function page() {
  if (values.built) {
    const names = await readdir(ASSETS);
    return new Map(await Promise.all(names.map(async (name) => [name, await readFile(resolve(ASSETS, name))])));
  }
  return (await bundle()).files;
}

const server = createServer(async (request, response) => {
  const url = new URL(request.url, "http://console");
  response.setHeader("Content-Security-Policy", POLICY);
  response.setHeader("X-Content-Type-Options", "nosniff");
  response.setHeader("Referrer-Policy", "no-referrer");
  try {
    if (url.pathname.startsWith("/console/v1/")) return await api.answer(request, response, url);
    if (url.pathname === "/") files = await page();
    const name = url.pathname === "/" ? "index.html" : url.pathname.slice(1);
    const bytes = files.get(name);
    if (!bytes) return response.writeHead(404).end();
    response.setHeader("Content-Type", TYPES[name.split(".").at(-1)] ?? "application/octet-stream");
    response.setHeader("Content-Encoding", "gzip");
    response.end(gzipSync(bytes));
  } catch (error) {
    console.error(error);
    response.writeHead(500).end(String(error));
  }
});

server.on("upgrade", async (request, socket) => {
  const extra = new URL("./screen.mjs", import.meta.url);
  if (/\/console(\?|$)/.test(request.url)) serial(accept(request, socket));
  else if (existsSync(extra)) (await import(extra)).screen(accept(request, socket));
  else socket.destroy();
});

server.listen(Number(values.port), "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/`));
