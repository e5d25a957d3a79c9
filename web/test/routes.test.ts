import assert from "node:assert/strict";
import { test } from "node:test";
import { address } from "../src/api/client";
import { link, machineLink, parse } from "../src/app/routes";
import { objectPath } from "../src/topics/deletion";

test("an address names a page, a machine, or a tab of one", () => {
  assert.deepEqual(parse(""), { page: "machines", place: "", rest: "", query: {} });
  assert.deepEqual(parse("#/machines"), { page: "machines", place: "", rest: "", query: {} });
  assert.deepEqual(parse("#/machines/vm/default/web"), { page: "machine", place: "vm/default/web", rest: "", query: {} });
  assert.deepEqual(parse("#/machines/vm/default/web/console?window=1"), { page: "machine", place: "vm/default/web", rest: "console", query: { window: "1" } });
  assert.deepEqual(parse("#/images"), { page: "images", place: "", rest: "", query: {} });
  assert.equal(parse("#/%zz").page, "%zz", "what is no encoding stays as it is");
});

test("links lead back to what they were made of", () => {
  assert.equal(parse(machineLink("vm/default/web", "yaml")).rest, "yaml");
  assert.equal(parse(machineLink("vm/default/web")).place, "vm/default/web");
  assert.deepEqual(parse(link("images", { q: "a b&c" })).query, { q: "a b&c" });
});

test("addresses of the API keep the slashes of places and encode all else", () => {
  assert.equal(address("machines/vm/default/web/log", { kind: "boot" }), "console/v1/machines/vm/default/web/log?kind=boot");
  assert.equal(address("kinds/a b?c"), "console/v1/kinds/a%20b%3Fc");
});

test("objects without a group or a namespace have no empty segments", () => {
  assert.equal(objectPath({ group: "", kind: "PersistentVolumeClaim", namespace: "default", name: "root" }), "objects/core/PersistentVolumeClaim/default/root");
  assert.equal(objectPath({ group: "x.io", kind: "Pool", namespace: "", name: "a" }), "objects/x.io/Pool/-/a");
});
