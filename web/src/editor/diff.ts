/** The difference of two texts by lines, after Myers' greedy algorithm. */

export type LineKind = "same" | "added" | "removed";

export interface DiffLine {
  kind: LineKind;
  text: string;
  /** Line numbers from 1; 0 where the line is not in that text. */
  before: number;
  after: number;
}

/** A run of lines with `context` unchanged lines around changes. `skipped` unchanged lines stand before it. */
export interface Hunk {
  skipped: number;
  lines: DiffLine[];
}

export function linesOf(text: string): string[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

export function diffLines(before: string, after: string): DiffLine[] {
  const a = linesOf(before);
  const b = linesOf(after);
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const middle = editsOf(a.slice(start, a.length - end), b.slice(start, b.length - end));
  const kinds: LineKind[] = [...Array<LineKind>(start).fill("same"), ...middle, ...Array<LineKind>(end).fill("same")];
  return numbered(kinds, a, b);
}

function numbered(kinds: readonly LineKind[], a: readonly string[], b: readonly string[]): DiffLine[] {
  let x = 0;
  let y = 0;
  return kinds.map((kind) => {
    if (kind !== "added") x += 1;
    if (kind !== "removed") y += 1;
    const text = kind === "removed" ? a[x - 1] : b[y - 1];
    return { kind, text: text ?? "", before: kind === "added" ? 0 : x, after: kind === "removed" ? 0 : y };
  });
}

/** Beyond this number of changed lines the texts are shown as replaced: nobody reads such a difference line by line. */
const MOST_EDITS = 2000;

function editsOf(a: readonly string[], b: readonly string[]): LineKind[] {
  const trail: Map<number, number>[] = [];
  const furthest = new Map<number, number>([[1, 0]]);
  const most = Math.min(a.length + b.length, MOST_EDITS);
  for (let depth = 0; depth <= most; depth += 1) {
    trail.push(new Map(furthest));
    for (let k = -depth; k <= depth; k += 2) {
      const down = k === -depth || (k !== depth && at(furthest, k - 1) < at(furthest, k + 1));
      let x = down ? at(furthest, k + 1) : at(furthest, k - 1) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1;
      furthest.set(k, x);
      if (x >= a.length && x - k >= b.length) return walkBack(trail, a.length, b.length);
    }
  }
  return [...a.map((): LineKind => "removed"), ...b.map((): LineKind => "added")];
}

function at(furthest: ReadonlyMap<number, number>, k: number): number {
  return furthest.get(k) ?? 0;
}

function walkBack(trail: readonly Map<number, number>[], endX: number, endY: number): LineKind[] {
  const kinds: LineKind[] = [];
  let x = endX;
  let y = endY;
  for (let depth = trail.length - 1; depth >= 0; depth -= 1) {
    const furthest = trail[depth] as Map<number, number>;
    const k = x - y;
    const down = k === -depth || (k !== depth && at(furthest, k - 1) < at(furthest, k + 1));
    const beforeK = down ? k + 1 : k - 1;
    const beforeX = depth === 0 ? 0 : at(furthest, beforeK);
    const beforeY = depth === 0 ? 0 : beforeX - beforeK;
    while (x > beforeX && y > beforeY) {
      kinds.push("same");
      x -= 1;
      y -= 1;
    }
    if (depth > 0) kinds.push(down ? "added" : "removed");
    x = beforeX;
    y = beforeY;
  }
  return kinds.reverse();
}

export interface Replacement {
  from: number;
  to: number;
  insert: string;
}

/** The changes that make one text of the other: only lines that differ, so that cursor, folds and history stay with the others. */
export function replacements(before: string, after: string): Replacement[] {
  if (!before.endsWith("\n") || !after.endsWith("\n")) return [{ from: 0, to: before.length, insert: after }];
  const changes: Replacement[] = [];
  let at = 0;
  for (const line of diffLines(before, after)) {
    const to = at + line.text.length + 1;
    if (line.kind === "added") changes.push({ from: at, to: at, insert: `${line.text}\n` });
    if (line.kind === "removed") changes.push({ from: at, to, insert: "" });
    if (line.kind !== "added") at = to;
  }
  return changes;
}

export function hunksOf(lines: readonly DiffLine[], context = 3): Hunk[] {
  const near = lines.map(() => false);
  lines.forEach((line, index) => {
    if (line.kind === "same") return;
    for (let each = Math.max(0, index - context); each <= Math.min(lines.length - 1, index + context); each += 1) near[each] = true;
  });
  const hunks: Hunk[] = [];
  let skipped = 0;
  lines.forEach((line, index) => {
    if (!near[index]) {
      skipped += 1;
      return;
    }
    if (index === 0 || !near[index - 1]) {
      hunks.push({ skipped, lines: [] });
      skipped = 0;
    }
    hunks.at(-1)?.lines.push(line);
  });
  return hunks;
}

export function countsOf(lines: readonly DiffLine[]): { added: number; removed: number } {
  return {
    added: lines.filter((line) => line.kind === "added").length,
    removed: lines.filter((line) => line.kind === "removed").length,
  };
}
