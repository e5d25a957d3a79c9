/** Usage over time: what the server kept, what the page saw itself, and both cut to a window. */

import type { UsageRow, UsageSeries } from "../generated/answers";

export type Range = UsageSeries["range"];
export type Quantity = Exclude<keyof UsageRow, "id">;

export const QUANTITIES: readonly Quantity[] = ["cpu", "memory", "guest", "read", "write", "received", "sent"];
export const SECONDS: Readonly<Record<Range, number>> = { "1h": 3600, "24h": 86_400, "7d": 604_800 };

/** Columns of equal length; `times` ascend, in seconds since 1970. */
export interface Table {
  times: number[];
  series: Record<Quantity, (number | null)[]>;
}

export function emptyTable(): Table {
  return { times: [], series: { cpu: [], memory: [], guest: [], read: [], write: [], received: [], sent: [] } };
}

/** The server's answer as a table. A series that it does not know is all gaps. */
export function tableOf(answer: UsageSeries): Table {
  const table = emptyTable();
  table.times = answer.times;
  for (const name of QUANTITIES) {
    const values = answer.series[name] ?? [];
    table.series[name] = answer.times.map((_, index) => values[index] ?? null);
  }
  return table;
}

/** Adds a sample. A second sample within a second of time replaces the first; a clock that went back adds nothing. */
export function addSample(table: Table, time: number, row: UsageRow, limit: number): void {
  const last = table.times.at(-1);
  if (last !== undefined && time < last) return;
  if (last === time) dropFrom(table, table.times.length - 1);
  table.times.push(time);
  for (const name of QUANTITIES) table.series[name].push(row[name] < 0 ? null : row[name]);
  const surplus = table.times.length - limit;
  if (surplus > 0) {
    table.times.splice(0, surplus);
    for (const name of QUANTITIES) table.series[name].splice(0, surplus);
  }
}

function dropFrom(table: Table, index: number): void {
  table.times.length = index;
  for (const name of QUANTITIES) table.series[name].length = index;
}

/** The kept table, followed by the samples of `seen` that are newer. */
export function joined(kept: Table, seen: Table): Table {
  const last = kept.times.at(-1) ?? Number.NEGATIVE_INFINITY;
  const start = seen.times.findIndex((time) => time > last);
  if (start < 0) return kept;
  const table = emptyTable();
  table.times = [...kept.times, ...seen.times.slice(start)];
  for (const name of QUANTITIES) table.series[name] = [...kept.series[name], ...seen.series[name].slice(start)];
  return table;
}

/** The part of a table from `from` to `to`, with a gap wherever samples are further apart than `patience` seconds. */
export function windowOf(table: Table, from: number, to: number, patience: number): Table {
  const cut = emptyTable();
  let previous: number | undefined;
  table.times.forEach((time, index) => {
    if (time < from || time > to) return;
    if (previous !== undefined && time - previous > patience) {
      cut.times.push(previous + 1);
      for (const name of QUANTITIES) cut.series[name].push(null);
    }
    previous = time;
    cut.times.push(time);
    for (const name of QUANTITIES) cut.series[name].push(table.series[name][index] ?? null);
  });
  return cut;
}

export interface Digest {
  last: number;
  mean: number;
  highest: number;
  highestAt: number;
}

/** The figures of a summary, or null where a series has no value. */
export function digestOf(times: readonly number[], values: readonly (number | null)[]): Digest | null {
  let count = 0;
  let sum = 0;
  let last = 0;
  let highest = Number.NEGATIVE_INFINITY;
  let highestAt = 0;
  values.forEach((value, index) => {
    if (value === null) return;
    count += 1;
    sum += value;
    last = value;
    if (value > highest) {
      highest = value;
      highestAt = times[index] ?? 0;
    }
  });
  return count === 0 ? null : { last, mean: sum / count, highest, highestAt };
}

/** A round number at or above `value` to end an axis with. Bytes are rounded in powers of two. */
export function ceilingOf(value: number, unit: "cores" | "bytes"): number {
  if (!(value > 0)) return unit === "cores" ? 1 : 1024;
  if (unit === "bytes") {
    const power = 2 ** Math.floor(Math.log2(value));
    return [1, 1.25, 1.5, 1.75, 2].map((factor) => factor * power).find((each) => each >= value) ?? 2 * power;
  }
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((each) => each >= value) ?? 10 * power;
}
