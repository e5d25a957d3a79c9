import assert from "node:assert/strict";
import { test } from "node:test";
import { errorOf, freeName, parseLabels, parsePorts, problemsOf, quantity, sent, sizeFor } from "../src/create/form";
import type { CatalogImage, MachineForm } from "../src/generated/answers";

const GIB = 1024 ** 3;
const image: CatalogImage = {
  id: "debian-13",
  name: "Debian",
  version: "13",
  os: "debian",
  arch: "amd64",
  address: "https://images.example.org/debian.qcow2",
  size: GIB,
  minDisk: 10 * GIB,
  minMemory: GIB / 2,
  user: "debian",
  local: true,
  missing: "",
};
const form: MachineForm = {
  image: "debian-13",
  name: "web",
  namespace: "default",
  dialect: "kubevirt",
  count: 1,
  cpus: 1,
  memory: "1Gi",
  disk: "",
  user: "debian",
  keys: ["ssh-ed25519 AAAA"],
  password: "",
  userData: "",
  network: "",
  ports: [],
  labels: {},
  start: true,
};
const fieldsOf = (change: Partial<MachineForm>, its: CatalogImage | undefined = image): string[] => problemsOf({ ...form, ...change }, its).map((each) => each.field);

test("a form that is in order has no problem", () => assert.deepEqual(fieldsOf({}), []));

test("what cannot be is found before the server is asked", () => {
  const table: [Partial<MachineForm>, string[]][] = [
    [{ memory: "2 apples" }, ["memory"]],
    [{ memory: "256Mi" }, ["memory"]],
    [{ memory: "" }, []],
    [{ disk: "5Gi" }, ["disk"]],
    [{ disk: "10Gi" }, []],
    [{ disk: "x" }, ["disk"]],
    [{ cpus: 0 }, ["cpus"]],
    [{ cpus: 1.5 }, ["cpus"]],
    [{ count: 0 }, ["count"]],
    [{ count: Number.NaN, cpus: 0 }, ["cpus", "count"]],
  ];
  for (const [change, fields] of table) assert.deepEqual(fieldsOf(change), fields, JSON.stringify(change));
  assert.deepEqual(problemsOf(form, undefined).map((each) => each.field), ["image"]);
  assert.match(errorOf(problemsOf(form, { ...image, missing: "no firmware" }), "image"), /no firmware\. Choose another/);
  assert.equal(errorOf([], "name"), "");
});

test("the smallest size that suffices is proposed, and a larger one for an image that needs it", () => {
  assert.equal(sizeFor(image).id, "small");
  assert.equal(sizeFor({ ...image, minMemory: 2 * GIB }).id, "medium");
  assert.equal(sizeFor({ ...image, minMemory: 33 * GIB }).memory, "33Gi");
});

test("a proposed name is free and may be the name of an object", () => {
  assert.equal(freeName("debian", new Set()), "debian");
  assert.equal(freeName("debian", new Set(["debian", "debian-2"])), "debian-3");
  assert.equal(freeName("openSUSE Leap!", new Set()), "opensuse-leap");
  assert.equal(freeName("***", new Set()), "machine");
});

test("quantities", () => {
  assert.equal(quantity("512Mi"), 512 * 1024 ** 2);
  assert.equal(quantity("1.5Gi"), 1.5 * GIB);
  assert.equal(quantity("2G"), 2e9);
  assert.equal(quantity("1024"), 1024);
  for (const text of ["", "Gi", "-1Gi", "1 GB", "1e3Q"]) assert.equal(quantity(text), -1, text);
});

test("ports and labels are read, and what cannot be read is named", () => {
  assert.deepEqual(parsePorts("8080:80, 5353:53/udp"), [
    { host: 8080, guest: 80, protocol: "TCP" },
    { host: 5353, guest: 53, protocol: "UDP" },
  ]);
  assert.deepEqual(parsePorts(" "), []);
  for (const text of ["80", "0:80", "80:70000", "a:b", "1:2/sctp"]) assert.throws(() => parsePorts(text), new RegExp(`“${text}”`));
  assert.deepEqual(parseLabels("app=web, tier=, a.b/c=d=e"), { app: "web", tier: "", "a.b/c": "d=e" });
  assert.throws(() => parseLabels("app=web, =x"), /“=x”/);
});

test("user data of one's own stand for user, keys and password", () => {
  assert.deepEqual(sent(form), form);
  const own = sent({ ...form, userData: "#cloud-config\n", password: "x" });
  assert.deepEqual([own.user, own.keys, own.password, own.userData], ["", [], "", "#cloud-config\n"]);
  assert.equal(sent({ ...form, userData: " \n" }).keys.length, 1, "blanks are no user data");
});
