import type { ComponentChildren } from "preact";
import type { MachineDetail, UsageRow } from "../generated/answers";
import { bytes, cores, rate } from "../format/amounts";
import { DialectBadge } from "../machines/columns";
import { Age } from "../parts/age";
import { CopyText } from "../parts/copytext";
import { Meter } from "../parts/meter";
import { StateBadge } from "../parts/statebadge";
import { useTopic } from "../state/live";

/** What the machine is, in one card. */
export function OverviewCard({ detail }: { detail: MachineDetail }) {
  const { row } = detail;
  const usage = useTopic("usage").value.get(row.id);
  return (
    <section class="card" aria-labelledby="overview-title">
      <h2 id="overview-title">Overview</h2>
      <dl class="facts">
        <Fact name="Status">
          <StateBadge state={row.state} status={row.status} reason={row.reason} />
          {row.since && (
            <span class="quiet">
              {" "}
              for <Age time={row.since} />
            </span>
          )}
        </Fact>
        <Fact name="Addresses">{row.ips.length > 0 ? row.ips.map((address) => <CopyText key={address} text={address} />) : <None />}</Fact>
        <Fact name="CPU">
          <Used label="CPU used" usage={usage} used={usage?.cpu} total={row.cpus} text={cores} unit={row.cpus === 1 ? "core" : "cores"} />
        </Fact>
        <Fact name="Memory">
          <Used label="Memory used" usage={usage} used={usage?.memory} total={row.memory} text={bytes} unit="" />
        </Fact>
        {usage && (
          <>
            <Fact name="Disk">
              {rate(usage.read)} read, {rate(usage.write)} written
            </Fact>
            <Fact name="Network">
              {rate(usage.received)} in, {rate(usage.sent)} out
            </Fact>
          </>
        )}
        <Fact name="Image">{row.image || <None />}</Fact>
        <Fact name="Guest">{detail.guest.os || row.guest || <None />}</Fact>
        <Fact name="Node">{row.node || <None />}</Fact>
        <Fact name="Created">
          <Age time={row.created} /> ago
        </Fact>
        <Fact name="Dialect">
          <DialectBadge dialect={row.dialect} />
          {detail.made && detail.made !== row.id && <span class="quiet"> · {detail.made}</span>}
        </Fact>
        <Fact name="Run strategy">{detail.runStrategy || <None />}</Fact>
        <Fact name="Hardware">{[detail.machineType, detail.firmware, detail.accelerator].filter(Boolean).join(" · ") || <None />}</Fact>
        <Fact name="Labels">
          {Object.entries(row.labels).length > 0 ? (
            <span class="tags wrap">
              {Object.entries(row.labels).map(([key, value]) => (
                <span key={key} class="tag mono">
                  {value ? `${key}=${value}` : key}
                </span>
              ))}
            </span>
          ) : (
            <None />
          )}
        </Fact>
      </dl>
    </section>
  );
}

export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

export function None() {
  return <span class="quiet">–</span>;
}

interface UsedProps {
  label: string;
  usage: UsageRow | undefined;
  used: number | undefined;
  total: number;
  text: (amount: number) => string;
  unit: string;
}

function Used({ label, usage, used, total, text, unit }: UsedProps) {
  const whole = `${text(total)}${unit && ` ${unit}`}`;
  if (!usage || used === undefined || used < 0) return <>{whole}</>;
  return <Meter label={label} part={total > 0 ? used / total : -1} text={`${text(used)} of ${whole}`} />;
}
