import { machineLink } from "../app/routes";
import { bytes, cores, percent, rate } from "../format/amounts";
import type { MachineRow, UsageRow } from "../generated/answers";
import { Age } from "../parts/age";
import { CopyText } from "../parts/copytext";
import { Icon } from "../parts/icon";
import { Meter } from "../parts/meter";
import { OsMark } from "../parts/osmark";
import { StateBadge } from "../parts/statebadge";
import { rowsOf } from "../state/live";
import { namespace } from "../state/preferences";
import type { Column, Tab } from "../tables/columns";
import { byAge } from "../tables/order";
import { RowMenu } from "./rowmenu";

const usageOf = (row: MachineRow): UsageRow | undefined => rowsOf("usage").value.get(row.id);
const none = <span class="quiet">–</span>;

export const DIALECTS: Readonly<Record<string, string>> = {
  kubevirt: "KubeVirt",
  kubermatic: "Kubermatic",
  stakater: "Stakater",
  virtrigaud: "VirtRigaud",
  vitistack: "Vitistack",
};

export const DialectBadge = ({ dialect }: { dialect: string }) => <span class={`badge ${dialect}`}>{DIALECTS[dialect] ?? dialect}</span>;

export function cpuPart(row: MachineRow): number {
  const used = usageOf(row);
  return used && row.cpus > 0 ? used.cpu / row.cpus : -1;
}

// What the guest uses, if it reports that; otherwise what the machine takes of the host.
export function memoryPart(row: MachineRow): number {
  const used = usageOf(row);
  if (!used || row.memory <= 0) return -1;
  return (used.guest > 0 ? used.guest : used.memory) / row.memory;
}

export function Cpu({ row }: { row: MachineRow }) {
  const part = cpuPart(row);
  return part < 0 ? (
    <span class="quiet">{cores(row.cpus)} CPU</span>
  ) : (
    <Meter label={`CPU of ${row.name}`} part={part} text={`${percent(part)} of ${cores(row.cpus)}`} />
  );
}

export function Memory({ row }: { row: MachineRow }) {
  const part = memoryPart(row);
  return part < 0 ? <span class="quiet">{bytes(row.memory)}</span> : <Meter label={`Memory of ${row.name}`} part={part} text={`${percent(part)} of ${bytes(row.memory)}`} />;
}

function Name({ row, tab, place = false }: { row: MachineRow; tab: Tab; place?: boolean }) {
  return (
    <>
      <a href={machineLink(row.id)} tabIndex={tab} title={row.name}>
        {row.name}
      </a>
      {row.protected && (
        <span class="quiet" title="Protected from deletion">
          {" "}
          <Icon name="lock" size={12} />
          <span class="for-readers">protected</span>
        </span>
      )}
      {place && !namespace.value && <span class="below">{row.namespace}</span>}
    </>
  );
}

function StateCell({ row }: { row: MachineRow }) {
  return (
    <>
      <StateBadge state={row.state} status={row.status} />
      {row.reason && (
        <span class="below" title={row.reason}>
          {row.reason}
        </span>
      )}
    </>
  );
}

function Addresses({ row, tab }: { row: MachineRow; tab: Tab }) {
  const [first, ...rest] = row.ips;
  if (!first) return none;
  return (
    <span class="addresses">
      <CopyText text={first} tab={tab} />
      {rest.length > 0 && (
        <span class="tag" title={rest.join("\n")}>
          +{rest.length}
        </span>
      )}
    </span>
  );
}

export function Labels({ labels }: { labels: Record<string, string> }) {
  const pairs = Object.entries(labels).map(([key, value]) => (value ? `${key}=${value}` : key));
  return (
    <span class="tags" title={pairs.join("\n")}>
      {pairs.map((pair) => (
        <span key={pair} class="tag">
          {pair}
        </span>
      ))}
    </span>
  );
}

/** The name of an image: the last part of an address such as `https://host/images/debian-13.qcow2`. */
export function imageName(image: string): string {
  const last = image.includes("://") ? (image.split(/[?#]/)[0]?.split("/").filter(Boolean).at(-1) ?? image) : image;
  return last.replace(/\.(qcow2|img|raw|iso|vmdk)(\.(xz|gz|zst))?$/, "");
}

const guestOf = (row: MachineRow): string => row.guest || imageName(row.image);

export const COLUMNS: readonly Column<MachineRow>[] = [
  { id: "name", title: "Name", width: "minmax(120px, 1.6fr)", always: true, sort: (row) => row.name, cell: (row, tab) => <Name row={row} tab={tab} place /> },
  { id: "state", title: "State", width: "minmax(126px, 1.1fr)", sort: (row) => row.status, cell: (row) => <StateCell row={row} /> },
  { id: "reason", title: "Reason", width: "minmax(140px, 1.6fr)", extra: true, sort: (row) => row.reason, cell: (row) => (row.reason ? <span title={row.reason}>{row.reason}</span> : none) },
  { id: "cpu", title: "CPU", width: "minmax(108px, 1fr)", drop: 1, sort: cpuPart, cell: (row) => <Cpu row={row} /> },
  { id: "memory", title: "Memory", width: "minmax(136px, 1fr)", drop: 2, sort: memoryPart, cell: (row) => <Memory row={row} /> },
  { id: "address", title: "Address", width: "minmax(118px, 1.1fr)", drop: 3, sort: (row) => row.ips[0] ?? "", cell: (row, tab) => <Addresses row={row} tab={tab} /> },
  { id: "node", title: "Node", width: "minmax(66px, 0.7fr)", drop: 7, sort: (row) => row.node, cell: (row) => row.node || none },
  {
    id: "guest",
    title: "Guest",
    width: "minmax(112px, 1.2fr)",
    drop: 5,
    sort: guestOf,
    cell: (row) =>
      guestOf(row) ? (
        <span title={row.guest || row.image}>
          <OsMark name={guestOf(row)} /> {guestOf(row)}
        </span>
      ) : (
        none
      ),
  },
  { id: "image", title: "Image", width: "minmax(100px, 1fr)", extra: true, sort: (row) => row.image, cell: (row) => (row.image ? <span title={row.image}>{imageName(row.image)}</span> : none) },
  { id: "disks", title: "Disks", width: "60px", number: true, extra: true, sort: (row) => row.disks, cell: (row) => row.disks },
  { id: "read", title: "Disk reads", width: "96px", number: true, extra: true, sort: (row) => usageOf(row)?.read ?? -1, cell: (row) => rate(usageOf(row)?.read ?? -1) },
  { id: "write", title: "Disk writes", width: "96px", number: true, extra: true, sort: (row) => usageOf(row)?.write ?? -1, cell: (row) => rate(usageOf(row)?.write ?? -1) },
  { id: "received", title: "Received", width: "96px", number: true, extra: true, sort: (row) => usageOf(row)?.received ?? -1, cell: (row) => rate(usageOf(row)?.received ?? -1) },
  { id: "sent", title: "Sent", width: "96px", number: true, extra: true, sort: (row) => usageOf(row)?.sent ?? -1, cell: (row) => rate(usageOf(row)?.sent ?? -1) },
  { id: "labels", title: "Labels", width: "minmax(84px, 1.2fr)", drop: 9, sort: (row) => Object.entries(row.labels).join(), cell: (row) => <Labels labels={row.labels} /> },
  { id: "dialect", title: "Dialect", width: "92px", drop: 6, sort: (row) => row.dialect, cell: (row) => <DialectBadge dialect={row.dialect} /> },
  { id: "namespace", title: "Namespace", width: "minmax(84px, 0.8fr)", extra: true, sort: (row) => row.namespace, cell: (row) => row.namespace },
  { id: "since", title: "In state", width: "64px", number: true, extra: true, sort: (row) => byAge(row.since), cell: (row) => <Age time={row.since} /> },
  { id: "age", title: "Age", width: "50px", drop: 8, number: true, sort: (row) => byAge(row.created), cell: (row) => <Age time={row.created} /> },
  { id: "actions", title: "", width: "34px", always: true, sort: () => 0, cell: (row, tab) => <RowMenu row={row} tab={tab} /> },
];

/** A machine where there is no room for columns. */
export function NarrowMachine({ row, tab }: { row: MachineRow; tab: Tab }) {
  return (
    <>
      <div class="narrow-line">
        <Name row={row} tab={tab} />
        <StateBadge state={row.state} status={row.status} reason={row.reason} />
        <span class="end">
          <RowMenu row={row} tab={tab} />
        </span>
      </div>
      <div class="narrow-line quiet small">
        {cpuPart(row) >= 0 && <Meter label={`CPU of ${row.name}`} part={cpuPart(row)} text={percent(cpuPart(row))} />}
        <span class="cell">{row.ips[0] ?? row.reason ?? ""}</span>
        <span class="end">
          <DialectBadge dialect={row.dialect} />
        </span>
      </div>
    </>
  );
}
