/** Brings an edit onto a text that somebody else changed meanwhile. */

import { diffLines, linesOf } from "./diff";

export interface Merge {
  text: string;
  /** Places that both changed, each in another way. The edit's lines stand there. */
  conflicts: { line: number; mine: string[]; theirs: string[] }[];
}

/** Lines `start` to `end` of the base became `lines`. */
interface Change {
  start: number;
  end: number;
  lines: string[];
}

export function merge(base: string, mine: string, theirs: string): Merge {
  const lines = linesOf(base);
  const changes = { mine: changesOf(base, mine), theirs: changesOf(base, theirs) };
  const text: string[] = [];
  const conflicts: Merge["conflicts"] = [];
  let at = 0;
  while (changes.mine.length > 0 || changes.theirs.length > 0) {
    const region = nextRegion(changes.mine, changes.theirs);
    text.push(...lines.slice(at, region.start));
    const one = regionText(lines, region, region.mine);
    const other = regionText(lines, region, region.theirs);
    if (region.mine.length === 0) text.push(...other);
    else {
      if (region.theirs.length > 0 && one.join("\n") !== other.join("\n")) {
        conflicts.push({ line: text.length + 1, mine: one, theirs: other });
      }
      text.push(...one);
    }
    at = region.end;
  }
  text.push(...lines.slice(at));
  return { text: text.length > 0 ? `${text.join("\n")}\n` : "", conflicts };
}

function changesOf(base: string, other: string): Change[] {
  const changes: Change[] = [];
  let at = 0;
  let open: Change | null = null;
  for (const line of diffLines(base, other)) {
    if (line.kind === "same") {
      at += 1;
      open = null;
      continue;
    }
    if (!open) {
      open = { start: at, end: at, lines: [] };
      changes.push(open);
    }
    if (line.kind === "added") open.lines.push(line.text);
    else {
      at += 1;
      open.end = at;
    }
  }
  return changes;
}

interface Region {
  start: number;
  end: number;
  mine: Change[];
  theirs: Change[];
}

/** The first changes of both sides that touch each other. Takes them out of the lists. */
function nextRegion(mine: Change[], theirs: Change[]): Region {
  const start = Math.min(mine[0]?.start ?? Infinity, theirs[0]?.start ?? Infinity);
  const region: Region = { start, end: start, mine: [], theirs: [] };
  for (;;) {
    const side = touches(mine[0], region) ? mine : touches(theirs[0], region) ? theirs : null;
    const change = side?.shift();
    if (!change) return region;
    (side === mine ? region.mine : region.theirs).push(change);
    region.end = Math.max(region.end, change.end);
  }
}

function touches(change: Change | undefined, region: Region): boolean {
  if (!change) return false;
  return region.mine.length + region.theirs.length === 0 ? change.start === region.start : change.start < region.end || change.start === region.start;
}

function regionText(lines: readonly string[], region: Region, changes: readonly Change[]): string[] {
  const text: string[] = [];
  let at = region.start;
  for (const change of changes) {
    text.push(...lines.slice(at, change.start), ...change.lines);
    at = change.end;
  }
  return [...text, ...lines.slice(at, region.end)];
}
