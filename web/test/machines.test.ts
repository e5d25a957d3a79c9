import assert from "node:assert/strict";
import { test } from "node:test";
import { Problem, problemOf, refusal } from "../src/api/problem";
import { choose, fit, named, verbIn } from "../src/app/commands";
import type { MachineRow } from "../src/generated/answers";
import { guestOf, imageName } from "../src/machines/columns";
import { found } from "../src/machines/search";
import { actOnAll, refusalOf } from "../src/machines/verbs";
import { askRights, forgetRights } from "../src/state/rights";

const machine = (name: string, change: Partial<MachineRow> = {}): MachineRow => ({
  id: `vm/default/${name}`,
  namespace: "default",
  name,
  dialect: "kubevirt",
  status: "Running",
  state: "good",
  reason: "",
  ips: ["10.0.0.7"],
  cpus: 1,
  memory: 1024 ** 3,
  created: "2026-01-01T00:00:00Z",
  since: "2026-01-01T00:00:00Z",
  node: "rack1",
  image: "debian-13",
  disks: 1,
  guest: "Debian GNU/Linux 13",
  protected: false,
  labels: { app: "web", team: "" },
  verbs: ["stop", "delete"],
  ...change,
});

test("a search finds machines by any of their words, in one namespace or in all", () => {
  const rows = [machine("web"), machine("db", { id: "vm/b/db", namespace: "b", ips: ["10.0.0.8"], labels: {}, state: "bad" })];
  const names = (query: string, namespace = ""): string[] => found(rows, query, namespace).map((each) => each.name);
  assert.deepEqual(names(""), ["web", "db"]);
  assert.deepEqual(names("10.0.0.8"), ["db"]);
  assert.deepEqual(names("label:app=web"), ["web"]);
  assert.deepEqual(names("state:bad"), ["db"]);
  assert.deepEqual(names("debian", "b"), ["db"]);
});

test("a verb that is not possible says why", () => {
  assert.equal(refusalOf("stop", machine("web")), "");
  assert.match(refusalOf("start", machine("web")), /“Running”/);
  assert.match(refusalOf("delete", machine("web", { verbs: ["unprotect"], protected: true })), /protected; unprotect/);
});

test("a right that the user lacks is a reason for the machines of that kind in that namespace", async () => {
  const asked: string[] = [];
  const before = globalThis.fetch;
  globalThis.fetch = (url) => {
    asked.push(String(url));
    return Promise.resolve(new Response(JSON.stringify({ missing: [{ what: "stop", why: "the user may not update stop" }] })));
  };
  try {
    const other = machine("db", { id: "vm/b/db", namespace: "b" });
    assert.equal(refusalOf("stop", other), "", "the server judges what is not known yet");
    askRights(other.id);
    askRights("vm/b/cache");
    await new Promise((done) => setTimeout(done));
    assert.deepEqual(asked, ["console/v1/rights/vm/b"]);
    assert.equal(refusalOf("stop", other), "the user may not update stop");
    assert.equal(refusalOf("delete", other), "");
    assert.equal(refusalOf("stop", machine("web")), "", "in another namespace");
    assert.equal(refusalOf("stop", machine("db", { id: "vitistack/b/db", namespace: "b" })), "", "of another kind");
    forgetRights();
    assert.equal(refusalOf("stop", other), "");
  } finally {
    globalThis.fetch = before;
  }
});

test("work on many machines goes on after a failure, and reports each", async () => {
  const rows = Array.from({ length: 20 }, (_, index) => machine(`web-${index}`));
  let together = 0;
  let most = 0;
  const one = async (place: string, verb: string, options: Record<string, unknown> = {}): Promise<{ text: string }> => {
    together += 1;
    most = Math.max(most, together);
    await Promise.resolve();
    together -= 1;
    if (place.endsWith("-7")) throw refusal(409, { error: { message: "busy", why: "", fix: "wait", code: 409 } });
    return { text: `${verb} ${JSON.stringify(options)}` };
  };
  const outcome = await actOnAll(rows, "stop", { force: true }, one);
  assert.equal(outcome.done.length, 19);
  assert.deepEqual(outcome.failed.map(({ row, problem }) => [row.name, problem.message, problem.fix]), [["web-7", "busy", "wait"]]);
  assert.ok(most > 1 && most <= 6, `${most} at once`);
});

test("a failure always has words", () => {
  assert.equal(refusal(500, null).code, 500);
  assert.match(refusal(502, "x").fix, /log of the console/);
  assert.match(refusal(404, {}).fix, /Reload/);
  assert.equal(refusal(403, { error: { message: "no", why: "w", fix: "f", code: 0 } }).code, 403);
  const problem = new Problem({ message: "a", why: "b", fix: "c", code: 1 });
  assert.equal(problemOf(problem), problem);
  assert.equal(problemOf("text").message, "text");
});

test("the palette puts the best line first", () => {
  const command = (text: string) => ({ id: text, text, note: "", icon: "add" as const, act: () => {} });
  const texts = (typed: string): string[] => choose([command("Old web"), command("cobweb"), command("web"), command("web-2"), command("db")], typed, 3).map((each) => each.text);
  assert.deepEqual(texts("web"), ["web", "web-2", "Old web"]);
  assert.deepEqual(texts("nothing"), []);
  assert.equal(fit("a.b", "a.b"), 0);
  assert.equal(fit("axb", "a.b"), -1, "what a person types is no pattern");
});

test("a verb and a name are an action", () => {
  assert.equal(verbIn("stop web")?.verb.verb, "stop");
  assert.equal(verbIn("stop web")?.rest, "web");
  assert.equal(verbIn("stop"), null);
  assert.equal(verbIn("web stop"), null);
  assert.deepEqual(named([machine("my-web"), machine("web"), machine("db")], "web").map((each) => each.name), ["web", "my-web"]);
});

test("an image is called by the last part of its address", () => {
  assert.equal(imageName("https://cloud.example.org/a/debian-13-amd64.qcow2?x=1"), "debian-13-amd64");
  assert.equal(imageName("docker://quay.io/containerdisks/fedora:43"), "fedora:43");
  assert.equal(imageName("debian-13"), "debian-13");
  assert.equal(imageName("127.0.0.1:5000/disks/debian:13@sha256:0a1b"), "debian:13");
  assert.equal(imageName("x.img.xz"), "x");
  assert.equal(imageName(""), "");
});

test("the guest is what the agent reports, or an image that is called after a system", () => {
  assert.equal(guestOf(machine("web", { guest: "Debian GNU/Linux 13" })), "Debian GNU/Linux 13");
  assert.equal(guestOf(machine("web", { guest: "", image: "127.0.0.1:5000/disks/debian:13" })), "debian:13");
  assert.equal(guestOf(machine("web", { guest: "", image: "127.0.0.1:5000/disks/boot:1" })), "");
  assert.equal(guestOf(machine("web", { guest: "", image: "pvc/root" })), "");
});
