import assert from "node:assert/strict";
import { test } from "node:test";
import type { ActionState, Graph, SnapshotPart } from "../../src/generated/answers";
import { BOX, layoutOf, neighbourOf } from "../../src/machine/graphlayout";
import { plain } from "../../src/machine/plaintext";
import { snapshotName, treeOf, type SnapshotNode } from "../../src/machine/snapshottree";
import { arranged, reasonOf } from "../../src/machine/verbs";

const snapshot = (name: string, parent: string, created: string): SnapshotPart => ({ name, parent, created, state: "Ready", consistency: "", size: 0, current: false });
const shape = (nodes: readonly SnapshotNode[]): unknown => nodes.map((node) => (node.children.length ? [node.snapshot.name, shape(node.children)] : node.snapshot.name));

test("snapshots lie below the one that they follow, the oldest first", () => {
  const tree = treeOf([snapshot("c", "a", "3"), snapshot("b", "a", "2"), snapshot("a", "", "1"), snapshot("d", "b", "4")]);
  assert.deepEqual(shape(tree), [["a", [["b", ["d"]], "c"]]]);
});

test("no snapshot gets lost: a parent that is gone and a circle make roots", () => {
  assert.deepEqual(shape(treeOf([snapshot("a", "gone", "1")])), ["a"]);
  assert.deepEqual(shape(treeOf([snapshot("a", "b", "1"), snapshot("b", "a", "2"), snapshot("self", "self", "3")])), ["self", ["a", ["b"]]]);
});

test("the name of a new snapshot is free and short enough", () => {
  const now = new Date(2026, 10, 26, 14, 5);
  assert.equal(snapshotName("web", now, []), "web-1126-1405");
  assert.equal(snapshotName("web", now, ["web-1126-1405", "web-1126-1405-2"]), "web-1126-1405-3");
  assert.ok(snapshotName("x".repeat(63), now, []).length <= 63);
  assert.equal(snapshotName(`${"x".repeat(49)}.y`, now, []), `${"x".repeat(49)}-1126-1405`);
});

const node = (id: string): Graph["nodes"][number] => ({ id, kind: "Kind", name: id, namespace: "default", state: "good", status: "", machine: "" });
const edge = (from: string, to: string): Graph["edges"][number] => ({ from, to, label: "" });

test("objects stand to the right of those that point to them", () => {
  const layout = layoutOf({ nodes: ["pvc", "vm", "vmi", "dv"].map(node), edges: [edge("vm", "vmi"), edge("vm", "dv"), edge("dv", "pvc"), edge("vmi", "pvc")] });
  const column = new Map(layout.nodes.map((each) => [each.node.id, each.column]));
  assert.deepEqual([...column].sort(), [["dv", 1], ["pvc", 2], ["vm", 0], ["vmi", 1]]);
  assert.equal(layout.edges.length, 4);
  assert.equal(layout.width, 2 * BOX.margin + 3 * BOX.width + 2 * BOX.gapX);
});

test("no two objects cover each other, and all lie inside", () => {
  const layout = layoutOf({ nodes: ["a", "b", "c", "d", "e"].map(node), edges: [edge("a", "b"), edge("a", "c"), edge("a", "d"), edge("d", "e")] });
  for (const one of layout.nodes) {
    assert.ok(one.x >= 0 && one.y >= 0 && one.x + BOX.width <= layout.width && one.y + BOX.height <= layout.height);
    for (const other of layout.nodes) {
      if (one !== other && one.column === other.column) assert.ok(Math.abs(one.y - other.y) >= BOX.height);
    }
  }
});

test("circles, arrows to nowhere and lone objects are drawn", () => {
  const layout = layoutOf({ nodes: ["a", "b", "lone"].map(node), edges: [edge("a", "b"), edge("b", "a"), edge("a", "gone"), edge("a", "a")] });
  assert.equal(layout.nodes.length, 3);
  assert.deepEqual(layout.edges.map(({ edge: { from, to } }) => from + to), ["ab", "ba"]);
  assert.deepEqual(layoutOf({ nodes: [], edges: [] }).nodes, []);
});

test("arrow keys lead to the neighbour in that direction", () => {
  const layout = layoutOf({ nodes: ["vm", "vmi", "dv"].map(node), edges: [edge("vm", "vmi"), edge("vm", "dv")] });
  assert.equal(neighbourOf(layout, "vm", "ArrowRight"), "vmi");
  assert.equal(neighbourOf(layout, "vmi", "ArrowDown"), "dv");
  assert.equal(neighbourOf(layout, "dv", "ArrowUp"), "vmi");
  assert.equal(neighbourOf(layout, "dv", "ArrowLeft"), "vm");
  assert.equal(neighbourOf(layout, "vm", "ArrowLeft"), null);
  assert.equal(neighbourOf(layout, "vm", "Enter"), null);
});

test("the log of a console loses its escape sequences and keeps its lines", () => {
  assert.equal(plain("\u001b[0;32m[  OK  ]\u001b[0m Started\r\n\u001b]0;title\u0007next\r\r\n<b>\ttab"), "[  OK  ] Started\nnext\n<b>\ttab");
  assert.equal(plain("\u001b(B\u001b[?25hlogin: \u0007"), "login: ");
});

const action = (verb: string, allowed: boolean): ActionState => ({ verb, allowed, reason: allowed ? "" : "not now" });
const verbs = (actions: readonly ActionState[]): string[] => actions.map((each) => each.verb);

test("the header keeps its buttons in every state, and shows the useful one of a pair", () => {
  const paused = arranged([action("start", false), action("stop", true), action("restart", false), action("pause", false), action("unpause", true), action("snapshot", true), action("delete", true), action("reset", true)]);
  assert.deepEqual(verbs(paused.header), ["start", "stop", "restart", "unpause", "snapshot"]);
  assert.deepEqual(verbs(paused.menu), ["reset", "delete"]);
});

test("a reason is a sentence", () => {
  assert.equal(reasonOf({ verb: "start", allowed: false, reason: "it runs already" }), "It runs already.");
  assert.equal(reasonOf({ verb: "start", allowed: false, reason: "" }), "It is not possible now.");
  assert.equal(reasonOf({ verb: "start", allowed: true, reason: "" }), "");
});

test("the menu has one of protect and unprotect, never restore, and what destroys stands last", () => {
  const menu = (isProtected: boolean): string[] =>
    verbs(arranged([action("delete", true), action("unprotect", isProtected), action("protect", !isProtected), action("restore", true), action("migrate", true)]).menu);
  assert.deepEqual(menu(true), ["unprotect", "migrate", "delete"]);
  assert.deepEqual(menu(false), ["protect", "migrate", "delete"]);
});
