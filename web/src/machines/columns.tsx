import { machineLink } from "../app/routes";
import { bytes, cores, percent, rate } from "../format/amounts";
import { age as ageOf, instant } from "../format/time";
import type { MachineRow, UsageRow } from "../generated/answers";
import { CopyText } from "../parts/copytext";
import { Icon } from "../parts/icon";
import { Meter } from "../parts/meter";
import { OsMark, osFamily } from "../parts/osmark";
import { StateBadge } from "../parts/statebadge";
import { rowsOf } from "../state/live";
import { now } from "../state/now";
import { namespace } from "../state/preferences";
import type { Column, Tab } from "../tables/columns";
import { byAge } from "../tables/order";
import { menuButton } from "./rowmenu";

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

// An amount of 0 is not known: the machine has no VirtualMachine yet, or its instancetype decides.
function cpu(row: MachineRow) {
  const part = cpuPart(row);
  if (part >= 0) return Meter({ label: `CPU of ${row.name}`, part, text: `${percent(part)} of ${cores(row.cpus)}` });
  return row.cpus > 0 ? <span class="quiet">{cores(row.cpus)} CPU</span> : none;
}

function memory(row: MachineRow) {
  const part = memoryPart(row);
  if (part >= 0) return Meter({ label: `Memory of ${row.name}`, part, text: `${percent(part)} of ${bytes(row.memory)}` });
  return row.memory > 0 ? <span class="quiet">{bytes(row.memory)}</span> : none;
}

function name(row: MachineRow, tab: Tab, place: boolean) {
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

function state(row: MachineRow) {
  return (
    <>
      {StateBadge({ state: row.state, status: row.status })}
      {row.reason && <span class="below">{row.reason}</span>}
    </>
  );
}

function addresses(row: MachineRow, tab: Tab) {
  const [first, ...rest] = row.ips;
  if (!first) return none;
  const one = CopyText({ text: first, tab });
  if (!rest.length) return one;
  return (
    <span class="addresses">
      {one}
      <span class="tag" title={rest.join("\n")}>
        +{rest.length}
      </span>
    </span>
  );
}

const pairsOf = (row: MachineRow): string[] => Object.entries(row.labels).map(([key, value]) => (value ? `${key}=${value}` : key));

function labels(row: MachineRow) {
  return (
    <span class="tags">
      {pairsOf(row).map((pair) => (
        <span key={pair} class="tag">
          {pair}
        </span>
      ))}
    </span>
  );
}

/** The name of an image: the last part of an address such as `https://host/images/debian-13.qcow2`, without a digest. */
export function imageName(image: string): string {
  const path = image.includes("://") ? (image.split(/[?#]/)[0] ?? image) : image;
  const last = path.split("/").filter(Boolean).at(-1) ?? image;
  return last.replace(/@sha256:.*$/, "").replace(/\.(qcow2|img|raw|iso|vmdk)(\.(xz|gz|zst))?$/, "");
}

/** The system of the guest, as its agent reports it; otherwise the image, if that is called after a system. */
export function guestOf(row: MachineRow): string {
  const image = imageName(row.image);
  return row.guest || (osFamily(image).family === "other" ? "" : image);
}

function guest(row: MachineRow) {
  const found = guestOf(row);
  if (!found) return none;
  return (
    <>
      {OsMark({ name: found })} {found}
    </>
  );
}

const age = (time: string) => (time ? <time dateTime={time}>{ageOf(time, now.value)}</time> : none);
const rateOf = (row: MachineRow, quantity: "read" | "write" | "received" | "sent"): number => usageOf(row)?.[quantity] ?? -1;

export const COLUMNS: readonly Column<MachineRow>[] = [
  { id: "name", title: "Name", width: "minmax(116px, 1.6fr)", always: true, sort: (row) => row.name, cell: (row, tab) => name(row, tab, true) },
  // The longest state, WaitingForVolumeBinding, and the beginning of a cause.
  { id: "state", title: "State", width: "minmax(208px, 1.8fr)", sort: (row) => row.status, hint: (row) => row.reason, cell: state },
  { id: "reason", title: "Reason", width: "minmax(140px, 1.6fr)", extra: true, sort: (row) => row.reason, hint: (row) => row.reason, cell: (row) => row.reason || none },
  { id: "cpu", title: "CPU", width: "minmax(108px, 1fr)", drop: 1, sort: cpuPart, cell: cpu },
  { id: "memory", title: "Memory", width: "minmax(136px, 1fr)", drop: 2, sort: memoryPart, cell: memory },
  // The longest IPv4 address with what copies it, or with the number of the others.
  { id: "address", title: "Address", width: "minmax(146px, 1.1fr)", drop: 3, sort: (row) => row.ips[0] ?? "", cell: addresses },
  { id: "node", title: "Node", width: "minmax(66px, 0.7fr)", drop: 7, sort: (row) => row.node, cell: (row) => row.node || none },
  {
    id: "guest",
    title: "Guest",
    width: "minmax(112px, 1.2fr)",
    drop: 5,
    sort: guestOf,
    hint: (row) => row.guest || (guestOf(row) && `${row.image}; the guest reports nothing`),
    cell: guest,
  },
  { id: "image", title: "Image", width: "minmax(100px, 1fr)", extra: true, sort: (row) => row.image, hint: (row) => row.image, cell: (row) => imageName(row.image) || none },
  { id: "disks", title: "Disks", width: "60px", number: true, extra: true, sort: (row) => row.disks, cell: (row) => row.disks },
  { id: "read", title: "Disk reads", width: "96px", number: true, extra: true, sort: (row) => rateOf(row, "read"), cell: (row) => rate(rateOf(row, "read")) },
  { id: "write", title: "Disk writes", width: "96px", number: true, extra: true, sort: (row) => rateOf(row, "write"), cell: (row) => rate(rateOf(row, "write")) },
  { id: "received", title: "Received", width: "96px", number: true, extra: true, sort: (row) => rateOf(row, "received"), cell: (row) => rate(rateOf(row, "received")) },
  { id: "sent", title: "Sent", width: "96px", number: true, extra: true, sort: (row) => rateOf(row, "sent"), cell: (row) => rate(rateOf(row, "sent")) },
  { id: "labels", title: "Labels", width: "minmax(84px, 1.2fr)", drop: 9, sort: (row) => pairsOf(row).join(), hint: (row) => pairsOf(row).join("\n"), cell: labels },
  { id: "dialect", title: "Dialect", width: "92px", drop: 6, sort: (row) => row.dialect, cell: DialectBadge },
  { id: "namespace", title: "Namespace", width: "minmax(84px, 0.8fr)", extra: true, sort: (row) => row.namespace, cell: (row) => row.namespace },
  { id: "since", title: "In state", width: "64px", number: true, extra: true, sort: (row) => byAge(row.since), hint: (row) => instant(row.since), cell: (row) => age(row.since) },
  { id: "age", title: "Age", width: "50px", drop: 8, number: true, sort: (row) => byAge(row.created), hint: (row) => instant(row.created), cell: (row) => age(row.created) },
  { id: "actions", title: "", width: "34px", always: true, sort: () => 0, cell: menuButton },
];

/** A machine where there is no room for columns. */
export function narrowMachine(row: MachineRow, tab: Tab) {
  const part = cpuPart(row);
  return (
    <>
      <div class="narrow-line">
        {name(row, tab, false)}
        {StateBadge(row)}
        <span class="end">{menuButton(row, tab)}</span>
      </div>
      <div class="narrow-line quiet small">
        {part >= 0 && Meter({ label: `CPU of ${row.name}`, part, text: percent(part) })}
        <span class="cell">{row.ips[0] ?? row.reason ?? ""}</span>
        <span class="end">{DialectBadge(row)}</span>
      </div>
    </>
  );
}
