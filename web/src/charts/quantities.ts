/** What the charts draw, and their figures in words. */

import { bytes, cores, rate } from "../format/amounts";
import type { MachineRow } from "../generated/answers";
import { digestOf, SECONDS, type Quantity, type Range, type Table } from "./series";

export type Unit = "cores" | "bytes" | "rate";

export interface ChartLine {
  quantity: Quantity;
  label: string;
  /** The number of a colour of the page: `--chart-1`. */
  colour: 1 | 2 | 3;
}

export interface ChartSpec {
  id: string;
  title: string;
  unit: Unit;
  lines: readonly ChartLine[];
  /** What the machine has at most; 0 is unknown. */
  ceiling: (row: MachineRow) => number;
}

export const CHARTS: readonly ChartSpec[] = [
  { id: "cpu", title: "CPU", unit: "cores", lines: [{ quantity: "cpu", label: "Used", colour: 1 }], ceiling: (row) => row.cpus },
  {
    id: "memory",
    title: "Memory",
    unit: "bytes",
    lines: [
      { quantity: "memory", label: "On the host", colour: 1 },
      { quantity: "guest", label: "In the guest", colour: 2 },
    ],
    ceiling: (row) => row.memory,
  },
  {
    id: "disk",
    title: "Disk",
    unit: "rate",
    lines: [
      { quantity: "read", label: "Read", colour: 1 },
      { quantity: "write", label: "Written", colour: 3 },
    ],
    ceiling: () => 0,
  },
  {
    id: "network",
    title: "Network",
    unit: "rate",
    lines: [
      { quantity: "received", label: "Received", colour: 1 },
      { quantity: "sent", label: "Sent", colour: 3 },
    ],
    ceiling: () => 0,
  },
];

export const RANGE_NAMES: Readonly<Record<Range, string>> = { "1h": "1 hour", "24h": "24 hours", "7d": "7 days" };

export function amountText(value: number, unit: Unit): string {
  if (unit === "cores") return cores(value);
  return unit === "rate" ? rate(value) : bytes(value);
}

export function withUnit(value: number, unit: Unit): string {
  const text = amountText(value, unit);
  return unit === "cores" ? `${text} ${text === "1" ? "core" : "cores"}` : text;
}

/** A chart in one sentence for each line. */
export function summaryOf(spec: ChartSpec, table: Table, range: Range, ceiling: number, clock: (time: number) => string): string {
  const sentences = spec.lines.map((line) => {
    const digest = digestOf(table.times, table.series[line.quantity]);
    const name = spec.lines.length > 1 ? line.label : spec.title;
    if (!digest) return `${name}: no values.`;
    const share = ceiling > 0 ? ` of ${withUnit(ceiling, spec.unit)}` : "";
    const highest = `highest ${withUnit(digest.highest, spec.unit)} at ${clock(digest.highestAt)}`;
    return `${name}: now ${withUnit(digest.last, spec.unit)}${share}, mean ${withUnit(digest.mean, spec.unit)}, ${highest}.`;
  });
  return `${spec.title} over ${RANGE_NAMES[range]}. ${sentences.join(" ")}`;
}

/** The longest pause between samples that is no gap, in seconds. */
export function patienceOf(range: Range, step: number): number {
  const usual = step > 0 ? step : SECONDS[range] / 240;
  return Math.max(60, usual * 2.5);
}
