// The API of the console over data in memory. Actions change the data, and streams report it.
import { readFile, readdir } from "node:fs/promises";
import { resolve } from "node:path";
import { WEB } from "../build/settings.mjs";
import * as data from "./data.mjs";
import * as details from "./detail.mjs";
import { compose } from "./compose.mjs";

const SCHEMAS = resolve(WEB, "../api/jsonschema");
const PIXEL = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64");

class Refused extends Error {
  constructor(status, message, why = "", fix = "") {
    super(message);
    this.status = status;
    this.body = { error: { message, why, fix, code: status } };
  }
}

const AFTER = { start: ["good", "Running"], stop: ["off", "Stopped"], pause: ["waits", "Paused"], unpause: ["good", "Running"], restart: ["good", "Running"], suspend: ["off", "Suspended"], resume: ["good", "Running"] };
const VERBS = { good: ["stop", "restart", "pause", "reset", "suspend", "protect", "snapshot", "clone", "delete"], off: ["start", "protect", "snapshot", "clone", "delete"], waits: ["unpause", "stop", "delete"], going: ["stop", "delete"] };

export class MockApi {
  constructor(count) {
    this.rows = data.machines(count);
    this.topics = { ...data.topics(this.rows), machines: this.rows, tasks: count ? data.tasks(this.rows) : [] };
    this.topics.usage = this.rows.filter((row) => row.state === "good").map(data.usageOf);
    this.streams = new Set();
    this.signedIn = true;
    setInterval(() => this.live(), 3000).unref();
  }

  /** New figures, and progress of the tasks. */
  live() {
    this.topics.usage = this.rows.filter((row) => row.state === "good").map(data.usageOf);
    this.tell("usage", this.topics.usage);
    const running = this.topics.tasks.filter((task) => task.state === "running");
    for (const task of running) {
      task.percent += 1;
      if (task.percent >= 100) Object.assign(task, { state: "done", percent: 100, ended: new Date().toISOString(), keeps: "it has ended" });
    }
    this.tell("tasks", running);
  }

  tell(topic, set, gone = []) {
    for (const stream of this.streams) if (stream.topics.includes(topic)) stream.send("change", { topic, set, gone });
  }

  async answer(request, response, url) {
    const path = url.pathname.slice("/console/v1/".length).split("/").map(decodeURIComponent);
    if (path[0] === "stream") return this.stream(request, response, (url.searchParams.get("topics") ?? "").split(","));
    try {
      const body = request.method === "POST" ? JSON.parse((await text(request)) || "{}") : {};
      if (request.method !== "GET" && request.headers["x-paddock-console"] !== "1") throw new Refused(403, "the request lacks X-Paddock-Console");
      const result = await this.result(request.method, path, url.searchParams, body);
      if (Buffer.isBuffer(result)) return response.writeHead(200, { "Content-Type": "image/png" }).end(result);
      if (typeof result === "string") return response.writeHead(200, { "Content-Type": "text/plain; charset=utf-8" }).end(result);
      response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(result));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      response.writeHead(error.status, { "Content-Type": "application/json" }).end(JSON.stringify(error.body));
    }
  }

  stream(request, response, topics) {
    response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
    let id = 0;
    const send = (event, value) => response.write(`id: ${(id += 1)}\nevent: ${event}\ndata: ${JSON.stringify(value)}\n\n`);
    for (const topic of topics) if (this.topics[topic]) send("reset", { topic, rows: this.topics[topic] });
    const stream = { topics, send };
    this.streams.add(stream);
    request.on("close", () => this.streams.delete(stream));
  }

  async result(method, path, query, body) {
    const [first, ...rest] = path;
    if (first === "machines") return this.machine(method, rest.slice(0, 3).join("/"), rest.slice(3), query, body);
    if (first === "kinds") return { rows: this.topics[rest[0]] ?? [] };
    if (first === "schema") return schema(rest[0], rest[1]);
    if (first === "tasks" && rest.at(-1) === "cancel") return this.cancel(rest.slice(0, -1).join("/"));
    if (first === "objects" && method === "DELETE") return this.removeObject(...rest);
    const answers = {
      me: () => this.me(),
      login: () => this.login(method, body),
      logout: () => {
        this.signedIn = false;
        return { text: "signed out" };
      },
      rights: () => ({ missing: [] }),
      catalog: () => data.catalog,
      keys: () => data.keys,
      host: () => data.host(this.rows),
      tasks: () => ({ rows: this.topics.tasks }),
      compose: () => compose(body, this.rows),
      convert: () => ({ yaml: body.yaml, losses: body.dialect === "kubevirt" ? [] : ["spec.template.spec.domain.cpu.model has no place in this dialect"], remarks: [], errors: [], machines: [] }),
      plan: () => plan(body),
      apply: () => this.apply(body),
    };
    if (!answers[first]) throw new Refused(404, "the console does not serve this path");
    return answers[first]();
  }

  me() {
    if (!this.signedIn) throw new Refused(401, "nobody is signed in to this console", "", "sign in with a token");
    return data.me;
  }

  login(method, body) {
    if (method === "GET") return { method: "token" };
    if (body.token.length < 8) throw new Refused(401, "the server does not take the token", "it is too short for one", "run kubectl create token NAME");
    this.signedIn = true;
    return { text: "signed in" };
  }

  machine(method, place, [verb, action], query, body) {
    const row = this.rows.find((each) => each.id === place);
    if (!row) throw new Refused(404, `there is no machine ${place}`, "it may have been deleted", "go back to the list");
    if (method === "POST" && verb === "actions") return this.act(row, action, body);
    const views = {
      undefined: () => details.detail(row),
      why: () => details.why(row),
      usage: () => details.usage(query.get("range") ?? "1h"),
      log: () => details.log(row, query.get("kind")),
      screenshot: () => PIXEL,
      events: () => ({ events: this.topics.events.slice(0, 12) }),
      history: () => details.history(row),
    };
    if (!views[verb]) throw new Refused(404, "the console does not serve this path");
    return views[verb]();
  }

  act(row, verb) {
    if (!row.verbs.includes(verb)) throw new Refused(409, `cannot ${verb} ${row.name}`, `the machine is ${row.status}`, "wait until its state changes");
    if (verb === "delete") {
      if (row.protected) throw new Refused(403, `cannot delete ${row.name}`, "the machine is protected", "unprotect it first");
      this.rows.splice(this.rows.indexOf(row), 1);
      this.tell("machines", [], [row.id]);
    } else if (verb === "protect" || verb === "unprotect") {
      row.protected = verb === "protect";
      this.tell("machines", [row]);
    } else if (AFTER[verb]) {
      const [state, status] = AFTER[verb];
      Object.assign(row, { state: "going", status: `${status}…`, verbs: VERBS.going });
      this.tell("machines", [row]);
      setTimeout(() => {
        Object.assign(row, { state, status, reason: "", verbs: VERBS[state], since: new Date().toISOString() });
        this.tell("machines", [row]);
      }, 1500);
    }
    return { text: `${verb} of ${row.name} requested` };
  }

  apply({ yaml, dryRun }) {
    const names = [...yaml.matchAll(/^  name: (.+)$/gm)].map((match) => match[1]);
    const namespace = /^  namespace: (.+)$/m.exec(yaml)?.[1] ?? "default";
    const known = new Set(this.rows.map((row) => row.id));
    const fresh = names.filter((name) => !known.has(`vm/${namespace}/${name}`));
    if (!dryRun) {
      const added = fresh.map((name) => ({ ...data.machines(1)[0], id: `vm/${namespace}/${name}`, name, namespace, dialect: "kubevirt", state: "going", status: "Starting", created: new Date().toISOString(), since: new Date().toISOString(), protected: false, ips: [], verbs: VERBS.going }));
      this.rows.push(...added);
      this.tell("machines", added);
    }
    return { objects: names.map((name) => ({ kind: "VirtualMachine", namespace, name, result: fresh.includes(name) ? "created" : "changed" })), warnings: [] };
  }

  cancel(id) {
    const task = this.topics.tasks.find((each) => each.id === id);
    if (!task) throw new Refused(404, "there is no such task");
    if (task.keeps) throw new Refused(409, "the task cannot be cancelled", task.keeps);
    Object.assign(task, { state: "failed", text: "cancelled", ended: new Date().toISOString(), keeps: "it has ended" });
    this.tell("tasks", [task]);
    return { text: "cancelled" };
  }

  removeObject(group, kind, namespace, name) {
    const wanted = (row) => (row.group || "core") === group && row.kind === kind && row.namespace === namespace && row.name === name;
    for (const [topic, rows] of Object.entries(this.topics)) {
      const row = rows.find(wanted);
      if (!row) continue;
      if (row.keeps) throw new Refused(409, `cannot delete ${row.name}`, row.keeps);
      this.topics[topic] = rows.filter((each) => each !== row);
      this.tell(topic, [], [row.id]);
      return { text: `deleted ${row.name}` };
    }
    throw new Refused(404, "there is no such object");
  }
}

function plan({ before = "", after = "" }) {
  const lines = after.split("\n");
  const findings = lines.flatMap((line, index) => (/\t/.test(line) ? [{ line: index + 1, column: line.indexOf("\t") + 1, severity: "error", field: "", message: "YAML does not allow tabs for indentation", rule: "yaml" }] : []));
  const at = lines.findIndex((line) => /cores:/.test(line));
  if (/cores: 0\b/.test(after)) findings.push({ line: at + 1, column: 18, severity: "error", field: "spec.template.spec.domain.cpu.cores", message: "must be at least 1", rule: "schema" });
  const old = before.split("\n");
  const changes = lines.flatMap((line, index) => (before && line !== old[index] ? [{ field: line.trim().split(":")[0], change: `${(old[index] ?? "").trim()} → ${line.trim()}`, effect: /cores/.test(line) ? "restart" : "live", why: "the field is part of the running guest", line: index + 1 }] : []));
  return { findings, changes, summary: changes.length ? `${changes.length} changes; the guest has to restart for some` : "nothing changes", running: true };
}

/** The schema of a kind of any version, found by what it is for. */
async function schema(group, kind) {
  const names = (await readdir(SCHEMAS, { recursive: true })).filter((name) => name.endsWith(".json")).sort();
  for (const name of names) {
    const found = findKind(JSON.parse(await readFile(resolve(SCHEMAS, name), "utf8")), group, kind);
    if (found) return found;
  }
  throw new Refused(404, `there is no schema of ${kind}.${group}`);
}

function findKind(document, group, kind) {
  const properties = document.properties ?? {};
  const versions = properties.apiVersion?.enum ?? [properties.apiVersion?.const ?? ""];
  if (properties.kind?.const === kind && versions.some((each) => each === group || each.startsWith(`${group}/`))) return document;
  return null;
}

async function text(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts).toString();
}
