import assert from "node:assert/strict";
import { test } from "node:test";
import { CHARTS, patienceOf, summaryOf } from "../../src/charts/quantities";
import { addSample, ceilingOf, digestOf, emptyTable, joined, tableOf, windowOf } from "../../src/charts/series";
import type { MachineRow, UsageRow } from "../../src/generated/answers";

const row = (cpu: number, changes: Partial<UsageRow> = {}): UsageRow => ({ id: "vm/default/web", cpu, memory: 1024, guest: -1, read: 0, write: 0, received: 0, sent: 0, ...changes });

test("samples are kept in order, one for each second, and no more than the limit", () => {
  const table = emptyTable();
  addSample(table, 10, row(1), 3);
  addSample(table, 10, row(2), 3);
  addSample(table, 9, row(9), 3);
  assert.deepEqual(table.times, [10]);
  addSample(table, 20, row(3), 3);
  addSample(table, 30, row(4), 3);
  addSample(table, 40, row(5), 3);
  assert.deepEqual(table.times, [20, 30, 40]);
  assert.deepEqual(table.series.cpu, [3, 4, 5]);
});

test("a value that is not known is a gap and not less than nothing", () => {
  const table = emptyTable();
  addSample(table, 10, row(1, { guest: -1, read: 0 }), 3);
  assert.deepEqual(table.series.guest, [null]);
  assert.deepEqual(table.series.read, [0]);
});

test("an answer without a series has gaps for it", () => {
  const table = tableOf({ range: "1h", step: 15, times: [1, 2], series: { cpu: [0.5, null] }, missing: "" });
  assert.deepEqual(table.series.cpu, [0.5, null]);
  assert.deepEqual(table.series.sent, [null, null]);
});

test("what the page saw goes on where the server's history ends", () => {
  const kept = tableOf({ range: "1h", step: 15, times: [10, 20], series: { cpu: [1, 2] }, missing: "" });
  const seen = tableOf({ range: "1h", step: 5, times: [15, 20, 25], series: { cpu: [8, 9, 3] }, missing: "" });
  const table = joined(kept, seen);
  assert.deepEqual(table.times, [10, 20, 25]);
  assert.deepEqual(table.series.cpu, [1, 2, 3]);
  assert.equal(joined(kept, emptyTable()), kept);
});

test("a window leaves out what is outside, and shows a long pause as a gap", () => {
  const table = tableOf({ range: "1h", step: 15, times: [0, 100, 110, 300], series: { cpu: [1, 2, 3, 4] }, missing: "" });
  const cut = windowOf(table, 50, 1000, 60);
  assert.deepEqual(cut.times, [100, 110, 111, 300]);
  assert.deepEqual(cut.series.cpu, [2, 3, null, 4]);
});

test("the figures of a summary leave gaps out", () => {
  assert.deepEqual(digestOf([1, 2, 3, 4], [2, null, 6, 1]), { last: 1, mean: 3, highest: 6, highestAt: 3 });
  assert.equal(digestOf([1], [null]), null);
});

test("axes end with round numbers", () => {
  assert.equal(ceilingOf(0, "cores"), 1);
  assert.equal(ceilingOf(0.3, "cores"), 0.5);
  assert.equal(ceilingOf(3, "cores"), 5);
  assert.equal(ceilingOf(1000, "bytes"), 1024);
  assert.equal(ceilingOf(1100, "bytes"), 1280);
});

test("a chart in words says what it is of, how much, and when", () => {
  const [cpu, , disk] = CHARTS;
  assert.ok(cpu && disk);
  const table = tableOf({ range: "1h", step: 15, times: [10, 20], series: { cpu: [1, 0.5] }, missing: "" });
  const words = summaryOf(cpu, table, "1h", cpu.ceiling({ cpus: 2 } as MachineRow), (time) => `t${time}`);
  assert.equal(words, "CPU over 1 hour. CPU: now 0.5 cores of 2 cores, mean 0.75 cores, highest 1 core at t10.");
  assert.equal(summaryOf(disk, table, "7d", 0, String), "Disk over 7 days. Read: no values. Written: no values.");
});

test("pauses below a minute are no gaps, and longer steps have more patience", () => {
  assert.equal(patienceOf("1h", 15), 60);
  assert.equal(patienceOf("7d", 1800), 4500);
});
