/** Snapshots as a tree: a snapshot's children are those that follow it. */

import type { SnapshotPart } from "../generated/answers";

export interface SnapshotNode {
  snapshot: SnapshotPart;
  children: SnapshotNode[];
}

/** Roots with what follows them, the oldest first. A snapshot whose parent is gone is a root, and so is one of a circle. */
export function treeOf(snapshots: readonly SnapshotPart[]): SnapshotNode[] {
  const names = new Set(snapshots.map((each) => each.name));
  const below = new Map<string, SnapshotPart[]>();
  for (const each of [...snapshots].sort(byAge)) {
    const parent = names.has(each.parent) && each.parent !== each.name ? each.parent : "";
    below.set(parent, [...(below.get(parent) ?? []), each]);
  }
  const visited = new Set<string>();
  const nodes = (parts: readonly SnapshotPart[]): SnapshotNode[] =>
    parts.flatMap((snapshot) => {
      if (visited.has(snapshot.name)) return [];
      visited.add(snapshot.name);
      return [{ snapshot, children: nodes(below.get(snapshot.name) ?? []) }];
    });
  return [...nodes(below.get("") ?? []), ...nodes([...snapshots].sort(byAge))];
}

function byAge(one: SnapshotPart, other: SnapshotPart): number {
  return one.created.localeCompare(other.created) || one.name.localeCompare(other.name);
}

/** A free name for a new snapshot: `web-1126-1405`, with a number where that is taken. */
export function snapshotName(machine: string, now: Date, taken: readonly string[]): string {
  const two = (value: number): string => String(value).padStart(2, "0");
  const stamp = `${two(now.getMonth() + 1)}${two(now.getDate())}-${two(now.getHours())}${two(now.getMinutes())}`;
  const base = `${machine.slice(0, 50).replace(/[^a-z0-9]+$/, "")}-${stamp}`;
  if (!taken.includes(base)) return base;
  let number = 2;
  while (taken.includes(`${base}-${number}`)) number += 1;
  return `${base}-${number}`;
}
