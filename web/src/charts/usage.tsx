import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { HostInfo, MachineRow, UsageSeries } from "../generated/answers";
import { useReading } from "../machine/detail";
import { Fact } from "../machine/overview";
import { Meter } from "../parts/meter";
import { ProblemNote } from "../parts/problemnote";
import { loadSheet } from "../parts/sheet";
import { theme } from "../state/preferences";
import { useTopic } from "../state/live";
import plotSheet from "uplot/dist/uPlot.min.css?sheet";
import sheet from "./charts.css?sheet";
import { openPlot, type Plot } from "./plot";
import { CHARTS, patienceOf, RANGE_NAMES, summaryOf, withUnit, type ChartSpec } from "./quantities";
import { keepSamples, seenOf, seenSince } from "./seen";
import { joined, SECONDS, tableOf, windowOf, type Range, type Table } from "./series";

await Promise.all([loadSheet(plotSheet), loadSheet(sheet)]);
keepSamples();

const RANGES = Object.keys(SECONDS) as Range[];
const EVERY_MS: Readonly<Record<Range, number>> = { "1h": 15_000, "24h": 60_000, "7d": 300_000 };

/** CPU, memory, disk and network over time. */
export function UsageView({ place, row }: { place: string; row: MachineRow }) {
  const [range, setRange] = useState<Range>("1h");
  const live = useTopic("usage").value.get(place);
  const { value, problem, reload } = useReading<UsageSeries>(`machines/${place}/usage`, range, { everyMs: EVERY_MS[range], query: `range=${range}` });
  const { table, from, to } = useMemo(() => viewOf(place, range, value), [place, range, value, live]);
  return (
    <section aria-labelledby="usage-title">
      <div class="card-head usage-head">
        <h2 id="usage-title">Usage</h2>
        <div class="segments" role="radiogroup" aria-label="Time">
          {RANGES.map((each) => (
            <label key={each}>
              <input type="radio" name="usage-range" checked={range === each} onChange={() => setRange(each)} />
              <span>{RANGE_NAMES[each]}</span>
            </label>
          ))}
        </div>
      </div>
      {problem && <ProblemNote problem={problem} again={reload} />}
      {value?.missing && (
        <p class="note-line">
          {value.missing} The charts show what this page has seen since {clockOf(seenSince())}.
        </p>
      )}
      <div class="charts">
        {CHARTS.map((spec) => (
          <Chart key={spec.id} spec={spec} row={row} table={table} range={range} from={from} to={to} />
        ))}
      </div>
      <NodePressure row={row} />
    </section>
  );
}

function viewOf(place: string, range: Range, kept: UsageSeries | null): { table: Table; from: number; to: number } {
  const to = Math.floor(Date.now() / 1000);
  const from = to - SECONDS[range];
  const table = kept && kept.times.length > 0 ? joined(tableOf(kept), seenOf(place)) : seenOf(place);
  return { table: windowOf(table, from, to, patienceOf(range, kept?.step ?? 0)), from, to };
}

interface ChartProps {
  spec: ChartSpec;
  row: MachineRow;
  table: Table;
  range: Range;
  from: number;
  to: number;
}

function Chart({ spec, row, table, range, from, to }: ChartProps) {
  const parent = useRef<HTMLDivElement>(null);
  const plot = useRef<Plot | null>(null);
  const [point, setPoint] = useState<number | null>(null);
  const ceiling = spec.ceiling(row);
  const dark = useDarkness();
  useEffect(() => {
    if (!parent.current) return;
    const opened = openPlot(parent.current, { spec, ceiling, onPoint: setPoint });
    plot.current = opened;
    opened.draw(table, from, to);
    return () => opened.dispose();
  }, [spec, ceiling, dark]);
  useEffect(() => plot.current?.draw(table, from, to), [table, from, to]);
  const shown = point ?? table.times.length - 1;
  const time = table.times[shown];
  return (
    <figure class="card chart">
      <figcaption>
        <h3>{spec.title}</h3>
        <p class="chart-legend" aria-hidden="true">
          {spec.lines.map((line) => (
            <span key={line.quantity}>
              <span class={`chart-swatch chart-${line.colour}`} />
              {spec.lines.length > 1 && `${line.label} `}
              <b>{valueText(table.series[line.quantity][shown], spec)}</b>
            </span>
          ))}
          {point !== null && time !== undefined && <span class="quiet">{clockOf(time, range)}</span>}
        </p>
      </figcaption>
      <div ref={parent} class="chart-plot" role="img" aria-label={summaryOf(spec, table, range, ceiling, (at) => clockOf(at, range))} />
      <p class="quiet small chart-summary">{summaryOf(spec, table, range, ceiling, (at) => clockOf(at, range))}</p>
    </figure>
  );
}

function valueText(value: number | null | undefined, spec: ChartSpec): string {
  return value === null || value === undefined ? "–" : withUnit(value, spec.unit);
}

function clockOf(seconds: number, range: Range = "1h"): string {
  const options: Intl.DateTimeFormatOptions = range === "1h" ? { hour: "2-digit", minute: "2-digit" } : { weekday: "short", hour: "2-digit", minute: "2-digit" };
  return new Date(seconds * 1000).toLocaleString(undefined, options);
}

/** Is the page dark now? Canvases do not follow a change of theme by themselves. */
function useDarkness(): boolean {
  const [system, setSystem] = useState(() => matchMedia("(prefers-color-scheme: dark)").matches);
  useEffect(() => {
    const query = matchMedia("(prefers-color-scheme: dark)");
    const changed = (): void => setSystem(query.matches);
    query.addEventListener("change", changed);
    return () => query.removeEventListener("change", changed);
  }, []);
  return theme.value === "system" ? system : theme.value === "dark";
}

/** How long work on the machine's node has to wait: a busy node slows a guest that is not busy itself. */
function NodePressure({ row }: { row: MachineRow }) {
  const { value } = useReading<HostInfo>("host", row.node);
  const node = value?.nodes.find((each) => each.name === row.node);
  if (!node || node.pressure.cpu < 0) return null;
  const parts = [
    { label: "CPU", percent: node.pressure.cpu },
    { label: "Memory", percent: node.pressure.memory },
    { label: "Disks", percent: node.pressure.io },
  ];
  return (
    <section class="card" aria-labelledby="pressure-title">
      <h3 id="pressure-title">Pressure on the node {node.name}</h3>
      <p class="quiet small">The share of the last ten seconds in which work had to wait.</p>
      <dl class="facts">
        {parts.map(({ label, percent }) => (
          <Fact key={label} name={label}>
            <Meter label={`Pressure: ${label}`} part={percent / 100} text={`${percent.toFixed(1)}%`} />
          </Fact>
        ))}
      </dl>
    </section>
  );
}
