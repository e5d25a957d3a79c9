import assert from "node:assert/strict";
import { test } from "node:test";
import { bytes, cores, percent, rate, several } from "../src/format/amounts";
import { age, instant } from "../src/format/time";
import { osFamily } from "../src/parts/osmark";

test("bytes have at most three digits", () => {
  const table: [number, string][] = [
    [0, "0 B"],
    [512, "512 B"],
    [999, "999 B"],
    [1000, "0.98 KiB"],
    [1536, "1.5 KiB"],
    [512 * 1024 ** 2, "512 MiB"],
    [20 * 1024 ** 3, "20 GiB"],
    [1000 * 1024 ** 3, "0.98 TiB"],
    [-1, "–"],
    [Number.NaN, "–"],
  ];
  for (const [amount, text] of table) assert.equal(bytes(amount), text);
  assert.equal(rate(2048), "2 KiB/s");
  assert.equal(rate(-1), "–");
});

test("cores and parts", () => {
  assert.equal(cores(0.256), "0.26");
  assert.equal(cores(4), "4");
  assert.equal(cores(12.34), "12.3");
  assert.equal(percent(0.347), "35%");
  assert.equal(percent(-1), "–");
  assert.equal(several(1, "machine"), "1 machine");
  assert.equal(several(1200, "machine"), "1,200 machines");
});

test("ages are short, as kubectl has them", () => {
  const now = Date.parse("2026-03-10T12:00:00Z");
  const ago = (seconds: number): string => age(new Date(now - seconds * 1000).toISOString(), now);
  const table: [number, string][] = [
    [0, "0s"],
    [119, "119s"],
    [120, "2m"],
    [3 * 3600 - 1, "179m"],
    [3 * 3600, "3h"],
    [47 * 3600, "47h"],
    [48 * 3600, "2d"],
    [76 * 3600, "3d4h"],
    [41 * 86400, "41d"],
    [-5, "0s"],
  ];
  for (const [seconds, text] of table) assert.equal(ago(seconds), text);
  assert.equal(age("no time", now), "–");
  assert.equal(instant(""), "");
});

test("an operating system has a family whatever its version", () => {
  assert.equal(osFamily("Debian GNU/Linux 13").family, "debian");
  assert.equal(osFamily("opensuse-16").family, "opensuse");
  assert.deepEqual(osFamily("Haiku R1"), { family: "other", letters: "Ha" });
  assert.equal(osFamily("").letters, "?");
});
