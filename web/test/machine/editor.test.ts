import assert from "node:assert/strict";
import { test } from "node:test";
import { countsOf, diffLines, hunksOf, replacements } from "../../src/editor/diff";
import { type Edit, heaviestOf, isBehind, isDirty, isRenumbered, isUnread, ordered, questionOf, refusalOf, spanOf, weightOf } from "../../src/editor/edit";
import { merge } from "../../src/editor/merge";
import type { Finding, Plan } from "../../src/generated/answers";

const kinds = (before: string, after: string): string => diffLines(before, after).map((line) => ({ same: "=", added: "+", removed: "-" })[line.kind] + line.text).join(" ");

test("a difference keeps as many lines as it can", () => {
  assert.equal(kinds("a\nb\nc\n", "a\nx\nc\n"), "=a -b +x =c");
  assert.equal(kinds("a\nb\nc\na\nb\nb\na\n", "c\nb\na\nb\na\nc\n"), "-a -b =c +b =a =b -b =a +c");
  assert.equal(kinds("", "a\n"), "+a");
  assert.equal(kinds("a\n", ""), "-a");
  assert.equal(kinds("same\n", "same\n"), "=same");
});

/** As an editor does it: all places are those of the text before. */
const applied = (before: string, after: string): string => replacements(before, after).reduceRight((text, { from, to, insert }) => text.slice(0, from) + insert + text.slice(to), before);

test("both texts can be read out of any difference", () => {
  // A small generator instead of chance: the same texts in every run.
  let seed = 7;
  const next = (below: number): number => (seed = (seed * 1103515245 + 12345) % 2147483648) % below;
  for (let round = 0; round < 400; round += 1) {
    const text = (): string => Array.from({ length: next(9) }, () => `${"abc"[next(3)]}\n`).join("");
    const [before, after] = [text(), text()];
    const lines = diffLines(before, after);
    const side = (other: string): string => lines.filter((line) => line.kind !== other).map((line) => `${line.text}\n`).join("");
    assert.equal(side("added"), before);
    assert.equal(side("removed"), after);
    assert.equal(applied(before, after), after);
  }
});

test("replacements leave equal lines alone", () => {
  assert.deepEqual(replacements("a\nb\nc\n", "a\nx\nc\n"), [{ from: 2, to: 4, insert: "" }, { from: 4, to: 4, insert: "x\n" }]);
  assert.equal(applied("a", "a\nb\n"), "a\nb\n");
});

test("lines have their numbers in both texts", () => {
  const numbers = diffLines("a\nb\n", "a\nx\n").map((line) => [line.before, line.after]);
  assert.deepEqual(numbers, [[1, 1], [2, 0], [0, 2]]);
});

test("hunks leave out what is far from a change", () => {
  const before = Array.from({ length: 20 }, (_, index) => `line ${index}`).join("\n");
  const hunks = hunksOf(diffLines(before, before.replace("line 10", "other")), 2);
  assert.equal(hunks.length, 1);
  assert.equal(hunks[0]?.skipped, 8);
  assert.equal(hunks[0]?.lines.length, 6);
  assert.deepEqual(countsOf(diffLines("a\n", "b\nc\n")), { added: 2, removed: 1 });
  assert.deepEqual(hunksOf(diffLines("a\n", "a\n")), []);
});

const BASE = "a\nb\nc\nd\ne\n";

test("an edit moves onto changes that do not touch it", () => {
  const moved = merge(BASE, "a\nB\nc\nd\ne\n", "a\nb\nc\nd\nE\nf\n");
  assert.deepEqual(moved, { text: "a\nB\nc\nd\nE\nf\n", conflicts: [] });
  assert.deepEqual(merge(BASE, "a\nB\nc\nd\ne\n", "a\nb\nC\nd\ne\n"), { text: "a\nB\nC\nd\ne\n", conflicts: [] });
});

test("where both changed a line, the edit's line stays and the place is named", () => {
  const moved = merge(BASE, "a\nmine\nc\nd\ne\n", "a\ntheirs\nc\nd\nE\n");
  assert.equal(moved.text, "a\nmine\nc\nd\nE\n");
  assert.deepEqual(moved.conflicts, [{ line: 2, mine: ["mine"], theirs: ["theirs"] }]);
});

test("the same change on both sides is no conflict, and removals count as changes", () => {
  assert.deepEqual(merge(BASE, "a\nB\nc\nd\ne\n", "a\nB\nc\nd\ne\n"), { text: "a\nB\nc\nd\ne\n", conflicts: [] });
  assert.deepEqual(merge(BASE, "a\nc\nd\ne\n", "a\nb\nc\ne\n"), { text: "a\nc\ne\n", conflicts: [] });
  assert.equal(merge(BASE, "a\nb\nnew\nc\nd\ne\n", "a\nb\nother\nc\nd\ne\n").conflicts.length, 1);
});

const plan = (changes: Partial<Plan> = {}): Plan => ({ findings: [], changes: [], summary: "", running: true, ...changes });
const finding = (line: number, severity: Finding["severity"], column = 1): Finding => ({ line, column, severity, field: "", message: "", rule: "" });
const edit: Edit = { base: "a\n", draft: "b\n", stored: "a\n" };

test("an edit is saved with its own plan and without errors", () => {
  assert.equal(refusalOf(edit, plan(), "b\n", ""), "");
  assert.match(refusalOf({ ...edit, draft: "a\n" }, plan(), "a\n", ""), /Nothing has changed/);
  assert.match(refusalOf(edit, plan(), "older\n", ""), /not ready/);
  assert.match(refusalOf(edit, null, "b\n", ""), /not ready/);
  assert.match(refusalOf(edit, plan({ findings: [finding(1, "error")] }), "b\n", ""), /Correct the error/);
  assert.match(refusalOf(edit, plan({ findings: [finding(1, "error"), finding(2, "error")] }), "b\n", ""), /2 errors/);
  assert.equal(refusalOf(edit, plan({ findings: [finding(1, "warning")] }), "b\n", ""), "");
  assert.equal(refusalOf(edit, plan(), "b\n", "made by a controller"), "made by a controller");
});

test("a new status of the stored object does not disturb an edit; a new spec does", () => {
  const stored = (version: number, spec: string, status: string): string => `metadata:\n  name: web\n  resourceVersion: "${version}"\nspec:\n  cores: ${spec}\nstatus:\n  phase: ${status}\n`;
  const base = stored(1, "2", "Starting");
  assert.equal(isBehind({ base, draft: base, stored: stored(9, "2", "Running") }), false);
  assert.equal(isBehind({ base, draft: base, stored: stored(9, "4", "Running") }), true);
  assert.equal(isRenumbered({ base, draft: base, stored: stored(9, "2", "Running") }), false);
  const numbered = (generation: number): string => base.replace("  name: web\n", `  name: web\n  generation: ${generation}\n`);
  assert.equal(isRenumbered({ base: numbered(1), draft: base, stored: numbered(2) }), true);
  assert.equal(isRenumbered({ base: numbered(1), draft: base, stored: numbered(2).replace("cores: 2", "cores: 3") }), false);
  assert.equal(isUnread(base), false);
  assert.equal(isUnread("metadata:\n  name: web\n"), true);
  assert.equal(isDirty({ base, draft: base, stored: "" }), false);
});

test("the worst effect decides what is asked before a save", () => {
  const change = (effect: string): Plan["changes"][number] => ({ field: "f", change: "", effect, why: "", line: 0 });
  assert.equal(heaviestOf(["live", "recreate", "restart"].map(change)), "recreate");
  assert.equal(weightOf("a word of a later server"), "restart");
  assert.equal(weightOf("no effect"), "none");
  assert.equal(questionOf(plan({ changes: [change("restart")] })), "");
  assert.match(questionOf(plan({ changes: [change("recreate")] })), /anew/);
  assert.equal(questionOf(plan({ running: false, changes: [change("recreate")] })), "");
  assert.match(questionOf(plan({ running: false, changes: [change("data loss")] })), /loses data/);
});

test("findings stand in the order of the text, the worst first", () => {
  const sorted = ordered([finding(3, "note"), finding(2, "warning"), finding(2, "error"), finding(1, "note")]);
  assert.deepEqual(sorted.map((each) => `${each.line} ${each.severity}`), ["1 note", "2 error", "2 warning", "3 note"]);
});

test("a finding covers its line from its column on, and stays inside of the text", () => {
  const text = "spec:\n  cores: 0  \n\n";
  assert.deepEqual(spanOf(text, 2, 1), { from: 8, to: 16 });
  assert.deepEqual(spanOf(text, 2, 10), { from: 15, to: 16 });
  assert.deepEqual(spanOf(text, 3, 5), { from: 19, to: 19 });
  assert.deepEqual(spanOf(text, 99, 1), { from: 20, to: 20 });
  assert.deepEqual(spanOf(text, 0, 0), { from: 0, to: 5 });
});
