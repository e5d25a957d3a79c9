import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { isText, isTexts, oneOf, remembered } from "../src/state/preferences";

const kept = new Map<string, string>();
let broken = false;
Object.assign(globalThis, {
  localStorage: {
    getItem: (key: string) => {
      if (broken) throw new Error("denied");
      return kept.get(key) ?? null;
    },
    setItem: (key: string, value: string) => {
      if (broken) throw new Error("full");
      kept.set(key, value);
    },
  },
});

beforeEach(() => {
  kept.clear();
  broken = false;
});

test("a value is kept when it changes, and read again", () => {
  const first = remembered("a", "x", isText);
  assert.equal(kept.size, 0, "nothing is kept before a person chose");
  first.value = "y";
  assert.equal(remembered("a", "x", isText).value, "y");
});

test("what does not fit counts as nothing", () => {
  kept.set("paddock.a", '["x", 1]');
  kept.set("paddock.b", "no JSON");
  kept.set("paddock.c", '"purple"');
  assert.deepEqual(remembered("a", ["d"], isTexts).value, ["d"]);
  assert.equal(remembered("b", "d", isText).value, "d");
  assert.equal(remembered<"light" | "dark">("c", "dark", oneOf("light", "dark")).value, "dark");
});

test("a browser that keeps nothing still works", () => {
  broken = true;
  const value = remembered("a", "x", isText);
  value.value = "y";
  assert.equal(value.value, "y");
});
