/** uPlot behind an interface of our own: lines over time in the colours of the page. */

import uPlot from "uplot";
import { amountText, type ChartSpec } from "./quantities";
import { ceilingOf, type Table } from "./series";

export interface Plot {
  draw(table: Table, from: number, to: number): void;
  dispose(): void;
}

export interface PlotOptions {
  spec: ChartSpec;
  ceiling: number;
  /** The sample below the pointer; null without one. */
  onPoint: (index: number | null) => void;
}

const HEIGHT = 160;
const AXIS_FONT = "11px system-ui, sans-serif";
const CORE_STEPS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64];
const BYTE_STEPS = Array.from({ length: 50 }, (_, power) => 2 ** power);

/** The colour of a variable as canvas knows it: `light-dark()` and `var()` resolved. */
function colourOf(parent: HTMLElement, variable: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${variable})`;
  parent.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

export function openPlot(parent: HTMLElement, { spec, ceiling, onPoint }: PlotOptions): Plot {
  const ink = colourOf(parent, "--chart-ink");
  const grid = colourOf(parent, "--chart-grid");
  const axis = { stroke: ink, font: AXIS_FONT, grid: { stroke: grid, width: 1 }, ticks: { show: false } };
  let span = { from: 0, to: 1 };
  const top = (highest: number): number => Math.max(ceiling, ceilingOf(highest, spec.unit === "cores" ? "cores" : "bytes"));
  const plot = new uPlot(
    {
      width: Math.max(1, parent.clientWidth),
      height: HEIGHT,
      legend: { show: false },
      cursor: { sync: { key: "usage" }, drag: { x: false, y: false }, points: { size: 7 }, y: false },
      scales: { x: { time: true, range: () => [span.from, span.to] }, y: { range: (_, __, highest) => [0, top(highest ?? 0)] } },
      axes: [
        { ...axis, size: 26, space: 64, values: (_, splits) => splits.map((time) => tickText(time, span.to - span.from)) },
        {
          ...axis,
          size: 68,
          space: 30,
          incrs: spec.unit === "cores" ? CORE_STEPS : BYTE_STEPS,
          values: (_, splits) => splits.map((value) => amountText(value, spec.unit)),
        },
      ],
      series: [
        {},
        ...spec.lines.map((line, index): uPlot.Series => {
          const colour = colourOf(parent, `--chart-${line.colour}`);
          const only = spec.lines.length === 1 || index === 0;
          return { label: line.label, stroke: colour, width: 1.75, points: { show: false }, spanGaps: false, ...(only ? { fill: faded(colour) } : { dash: [6, 3] }) };
        }),
      ],
      hooks: { setCursor: [(self) => onPoint(self.cursor.idx ?? null)] },
    },
    [[], ...spec.lines.map(() => [])],
    parent,
  );
  const observer = new ResizeObserver(() => plot.setSize({ width: Math.max(1, parent.clientWidth), height: HEIGHT }));
  observer.observe(parent);
  return {
    draw: (table, from, to) => {
      span = { from, to };
      plot.setData([table.times, ...spec.lines.map((line) => table.series[line.quantity])]);
    },
    dispose: () => {
      observer.disconnect();
      plot.destroy();
    },
  };
}

const HALF_DAY = 43_200;
const TWO_DAYS = 172_800;

/** Hours within a day or so, days beyond; midnight has the name of its day. */
function tickText(seconds: number, span: number): string {
  const time = new Date(seconds * 1000);
  const midnight = time.getHours() === 0 && time.getMinutes() === 0;
  if (span > TWO_DAYS || (span > HALF_DAY && midnight)) return time.toLocaleDateString(undefined, { weekday: "short", day: "numeric" });
  return time.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
}

/** The colour at a tenth of its strength, below a line. */
function faded(colour: string): string {
  const [, numbers] = /^rgba?\(([^)]+)\)$/.exec(colour) ?? [];
  return numbers ? `rgba(${numbers.split(",").slice(0, 3).join(",")}, 0.12)` : "transparent";
}
