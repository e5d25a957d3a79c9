import assert from "node:assert/strict";
import { test } from "node:test";
import { COLUMNS } from "../src/machines/columns";
import { type Column, fitting, leastWidth, visible } from "../src/tables/columns";
import { byAge, compare, ordered } from "../src/tables/order";
import { type Searchable, matcher, parseQuery } from "../src/tables/query";
import { mostRows, scrollFor, sliceOf } from "../src/tables/window";

test("a slice has the rows in view with some to spare, and never more than there are", () => {
  assert.deepEqual(sliceOf({ top: 0, height: 400, rowHeight: 40, count: 1000 }), { first: 0, end: 17 });
  assert.deepEqual(sliceOf({ top: 4032, height: 400, rowHeight: 42, count: 1000 }), { first: 93, end: 112 });
  assert.deepEqual(sliceOf({ top: 39_600, height: 400, rowHeight: 40, count: 1000 }), { first: 986, end: 1000 });
  assert.deepEqual(sliceOf({ top: 0, height: 400, rowHeight: 40, count: 3 }), { first: 0, end: 3 });
  // The table was scrolled far down, and then a search left three rows.
  assert.deepEqual(sliceOf({ top: 39_600, height: 400, rowHeight: 40, count: 3 }), { first: 3, end: 3 });
});

test("every row in view is drawn, in slots of which no two rows have the same", () => {
  for (const rowHeight of [34, 42, 68]) {
    for (let top = 0; top < 2000; top += 7) {
      const { first, end } = sliceOf({ top, height: 555, rowHeight, count: 1000 });
      assert.ok(first * rowHeight <= top && end * rowHeight >= top + 555, `${rowHeight} ${top}`);
      assert.ok(end - first <= mostRows(555, rowHeight), `${rowHeight} ${top}`);
    }
  }
});

test("a scroll that stays in its step draws nothing", () => {
  const at = (top: number) => sliceOf({ top, height: 400, rowHeight: 42, count: 1000 });
  assert.deepEqual(at(126), at(251));
  assert.notDeepEqual(at(251), at(252));
});

test("a row outside of the view is scrolled to its nearer edge, one inside stays", () => {
  const view = { top: 400, height: 200, rowHeight: 40 };
  assert.equal(scrollFor(2, view), 80);
  assert.equal(scrollFor(12, view), 400);
  assert.equal(scrollFor(20, view), 640);
});

test("people count: 2 before 10, and what is unknown comes last in both directions", () => {
  const names = ["web-10", "", "web-2"];
  assert.deepEqual(ordered(names, (name) => name, false), ["web-2", "web-10", ""]);
  assert.deepEqual(ordered(names, (name) => name, true), ["web-10", "web-2", ""]);
  assert.deepEqual(ordered([3, -1, 0], (number) => number, true), [3, 0, -1]);
  assert.ok(compare(byAge("2026-01-02T00:00:00Z"), byAge("2026-01-01T00:00:00Z")) < 0, "the youngest is first");
  assert.ok(compare(byAge(""), byAge("2026-01-01T00:00:00Z")) > 0);
});

const row: Searchable = { text: "web-1\nteam-a\nfd00:42::7", fields: { state: ["bad", "CrashLoopBackOff"], label: ["tier=front end"] } };
const fits = (query: string): boolean => matcher(query, ["state", "label", "node"])(row);

test("all words of a search must occur", () => {
  assert.ok(fits(""));
  assert.ok(fits("WEB team"));
  assert.ok(!fits("web db"));
  assert.ok(fits("web -db"));
  assert.ok(!fits("-web"));
});

test("a field looks at its values, and quotes keep blanks", () => {
  assert.ok(fits("state:bad"));
  assert.ok(fits("state:crash"));
  assert.ok(!fits("state:good"));
  assert.ok(fits('label:"front end"'));
  assert.ok(!fits("node:rack1"));
  assert.ok(fits("-node:rack1"));
});

test("what looks like a field and is none is text, as in an address", () => {
  assert.ok(fits("fd00:42"));
  assert.deepEqual(parseQuery("fd00:42"), [{ field: "", value: "fd00:42", not: false }]);
});

const column = (id: string, width: string, drop?: number): Column<unknown> => ({ id, title: id, width, sort: () => "", cell: () => "", ...(drop ? { drop } : {}) });

test("columns go where there is no room, the most dispensable first", () => {
  const columns = [column("name", "minmax(100px, 1fr)"), column("a", "50px", 1), column("b", "50px", 9)];
  const ids = (width: number): string[] => fitting(columns, width).map((each) => each.id);
  assert.equal(leastWidth("minmax(100px, 1fr)"), 100);
  assert.deepEqual(ids(236), ["name", "a", "b"]);
  assert.deepEqual(ids(235), ["name", "a"]);
  assert.deepEqual(ids(120), ["name"]);
  assert.deepEqual(ids(20), ["name"]);
  assert.deepEqual(ids(0), ["name", "a", "b"], "a width that is not known yet drops nothing");
});

test("at 1280 pixels a state and an address have room, and the guest is there", () => {
  const room = 972;
  const kept = fitting(visible(COLUMNS, null), room);
  const least = (id: string): number => leastWidth(kept.find((each) => each.id === id)?.width ?? "");
  assert.ok(least("state") >= 202, "WaitingForVolumeBinding with its mark");
  assert.ok(least("address") >= 142, "192.168.122.105 with what copies it");
  assert.ok(kept.some((each) => each.id === "guest"));
});

test("a choice of columns shows what was chosen and what always stays", () => {
  const columns = [{ ...column("name", "1px"), always: true }, column("a", "1px"), { ...column("b", "1px"), extra: true }];
  const ids = (chosen: string[] | null): string[] => visible(columns, chosen).map((each) => each.id);
  assert.deepEqual(ids(null), ["name", "a"]);
  assert.deepEqual(ids(["b"]), ["name", "b"]);
  assert.deepEqual(ids([]), ["name"]);
});
