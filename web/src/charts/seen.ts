/** Samples that the page saw since it was opened. They fill charts where the server keeps no history. */

import { effect } from "@preact/signals";
import type { UsageRow } from "../generated/answers";
import { rowsOf } from "../state/live";
import { addSample, emptyTable, type Table } from "./series";

/** An hour of samples every five seconds. */
const LIMIT = 720;

const tables = new Map<string, Table>();
const latest = new Map<string, UsageRow>();
let started = 0;

/** Begins to keep samples of all machines whose usage the page follows. */
export function keepSamples(): void {
  if (started) return;
  started = Math.floor(Date.now() / 1000);
  effect(() => {
    const now = Math.floor(Date.now() / 1000);
    for (const row of rowsOf("usage").value.values()) {
      if (latest.get(row.id) === row) continue;
      latest.set(row.id, row);
      const table = tables.get(row.id) ?? emptyTable();
      tables.set(row.id, table);
      addSample(table, now, row, LIMIT);
    }
  });
}

export function seenOf(place: string): Table {
  return tables.get(place) ?? emptyTable();
}

/** When the page began to keep samples, in seconds since 1970. */
export function seenSince(): number {
  return started;
}
