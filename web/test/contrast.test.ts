import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

// The tests run from a bundle, and from the folder of the page.
const css = readFileSync("src/style/base.css", "utf8");
const colours = new Map([...css.matchAll(/--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)/g)].map(([, name, light, dark]) => [name ?? "", [light ?? "", dark ?? ""] as const]));

function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: string, other: string): number {
  const [light = 0, dark = 0] = [luminance(one), luminance(other)].sort((first, second) => second - first);
  return (light + 0.05) / (dark + 0.05);
}

const GROUNDS = ["page", "surface", "raised", "sunken", "hover", "chosen"];
const STATES = ["good", "off", "waits", "bad", "going", "unknown"];
/** What stands on what, and the least contrast that WCAG 2.2 AA asks for: 4.5 for text, 3 for the edges of controls and the focus. */
const PAIRS: [string, string, number][] = [
  ...GROUNDS.map((ground): [string, string, number] => ["text", ground, 4.5]),
  ...GROUNDS.map((ground): [string, string, number] => ["quiet", ground, 4.5]),
  ...GROUNDS.map((ground): [string, string, number] => ["accent", ground, 4.5]),
  ...STATES.flatMap((state) => ["surface", "hover", "chosen", "page", `${state}-soft`].map((ground): [string, string, number] => [state, ground, 4.5])),
  ["on-accent", "accent", 4.5],
  ["on-accent", "accent-hover", 4.5],
  ["line-strong", "surface", 3],
  ["line-strong", "page", 3],
];

for (const [index, theme] of ["light", "dark"].entries()) {
  test(`colours have enough contrast in the ${theme} theme`, () => {
    const wrong = PAIRS.flatMap(([above, below, least]) => {
      const [one, other] = [colours.get(above)?.[index], colours.get(below)?.[index]];
      assert.ok(one && other, `${above} or ${below} has no colour`);
      const found = contrast(one, other);
      return found < least ? [`${above} on ${below}: ${found.toFixed(2)} < ${least}`] : [];
    });
    assert.deepEqual(wrong, []);
  });
}

test("contrast is that of the definition", () => {
  assert.equal(contrast("#000000", "#ffffff").toFixed(1), "21.0");
  assert.equal(contrast("#777777", "#ffffff").toFixed(2), "4.48");
});
