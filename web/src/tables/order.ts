export interface Order {
  column: string;
  down: boolean;
}

export type SortValue = string | number;

const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

/** Compare as people count: `web-2` before `web-10`, and what is not known (empty, less than 0) last. */
export function compare(one: SortValue, other: SortValue, down = false): number {
  const missing = Number(isUnknown(one)) - Number(isUnknown(other));
  if (missing) return missing;
  const turn = typeof one === "number" && typeof other === "number" ? one - other : collator.compare(String(one), String(other));
  return down ? -turn : turn;
}

const isUnknown = (value: SortValue): boolean => value === "" || (typeof value === "number" && (value < 0 || Number.isNaN(value)));

/** Rows in an order. Equal rows keep theirs. */
export function ordered<R>(rows: readonly R[], value: (row: R) => SortValue, down: boolean): R[] {
  return rows
    .map((row) => [value(row), row] as const)
    .sort(([one], [other]) => compare(one, other, down))
    .map(([, row]) => row);
}

const FAR_AHEAD = 8.64e15;

/** How an instant sorts as an age: the youngest first. */
export function byAge(time: string): SortValue {
  const at = Date.parse(time);
  return Number.isNaN(at) ? "" : FAR_AHEAD - at;
}
