import type { ComponentChildren } from "preact";
import { machineLink } from "../app/routes";
import { bytes } from "../format/amounts";
import type { EventPart, ObjectRow } from "../generated/answers";
import { Age } from "../parts/age";
import { CopyText } from "../parts/copytext";
import { Meter } from "../parts/meter";
import { OsMark } from "../parts/osmark";
import { StateBadge } from "../parts/statebadge";
import type { Column, Tab } from "../tables/columns";
import { type SortValue, byAge } from "../tables/order";
import { DeleteButton } from "./deletion";

type Cell = ObjectRow["cells"][string] | undefined;

/** One column that a topic has of its own: a member of `cells`. */
export interface CellColumn {
  id: string;
  title: string;
  width?: string;
  form?: "bytes" | "number" | "copy" | "os";
}

const none = <span class="quiet">–</span>;

const sortOf = (value: Cell): SortValue => (Array.isArray(value) ? value.join() : (value ?? ""));

function draw(value: Cell, form: CellColumn["form"], tab: Tab): ComponentChildren {
  if (value === undefined || value === "") return none;
  if (form === "bytes" && typeof value === "number") return value > 0 ? bytes(value) : none;
  const text = Array.isArray(value) ? value.join(", ") : String(value);
  if (form === "copy") return <CopyText text={text} tab={tab} />;
  if (form === "os") {
    return (
      <>
        <OsMark name={text} /> {text}
      </>
    );
  }
  return <span title={text}>{text}</span>;
}

function cellColumn({ id, title, width, form }: CellColumn, index: number): Column<ObjectRow> {
  // The last of a topic's own columns go first.
  const drop = 10 + index;
  const number = form === "bytes" || form === "number";
  return {
    id: `cell-${id}`,
    title,
    width: width ?? (number ? "76px" : "minmax(84px, 1fr)"),
    number,
    drop,
    sort: (row) => sortOf(row.cells[id]),
    cell: (row, tab) => draw(row.cells[id], form, tab),
  };
}

const SHOWN_MACHINES = 1;

/** The machines that use an object, as links. */
function Machines({ row, tab }: { row: ObjectRow; tab: Tab }) {
  if (!row.machines.length) return none;
  const rest = row.machines.length - SHOWN_MACHINES;
  return (
    <span class="tags">
      {row.machines.slice(0, SHOWN_MACHINES).map((place) => (
        <a key={place} class="tag" href={machineLink(place)} tabIndex={tab}>
          {place.split("/").at(-1)}
        </a>
      ))}
      {rest > 0 && (
        <span class="tag more" title={row.machines.map((place) => place.split("/").at(-1)).join("\n")}>
          +{rest}
        </span>
      )}
    </span>
  );
}

function Status({ row }: { row: ObjectRow }) {
  if (row.percent >= 0 && row.percent < 100) return <Meter progress label={`${row.name}: ${row.status}`} part={row.percent / 100} text={`${row.percent}%`} />;
  return <StateBadge state={row.state} status={row.status} />;
}

/** The columns of a topic: those that all topics have around those of its own. */
export function columnsOf(own: readonly CellColumn[]): Column<ObjectRow>[] {
  return [
    {
      id: "name",
      title: "Name",
      width: "minmax(150px, 1.5fr)",
      always: true,
      sort: (row) => row.name,
      cell: (row) => <strong title={`${row.kind} ${row.namespace}/${row.name}`}>{row.name}</strong>,
    },
    { id: "state", title: "State", width: "minmax(110px, 1fr)", sort: (row) => row.status, cell: (row) => <Status row={row} /> },
    ...own.map(cellColumn),
    { id: "machines", title: "Machines", width: "minmax(120px, 1.2fr)", drop: 3, sort: (row) => row.machines.length, cell: (row, tab) => <Machines row={row} tab={tab} /> },
    { id: "kind", title: "Kind", width: "minmax(120px, 1fr)", extra: true, sort: (row) => row.kind, cell: (row) => row.kind },
    { id: "namespace", title: "Namespace", width: "minmax(86px, 0.8fr)", drop: 1, sort: (row) => row.namespace, cell: (row) => row.namespace || none },
    { id: "age", title: "Age", width: "58px", number: true, drop: 2, sort: (row) => byAge(row.created), cell: (row) => <Age time={row.created} /> },
    { id: "actions", title: "", width: "34px", always: true, sort: () => 0, cell: (row, tab) => <DeleteButton row={row} tab={tab} /> },
  ];
}

export function NarrowObject({ row, tab }: { row: ObjectRow; tab: Tab }) {
  return (
    <>
      <div class="narrow-line">
        <strong class="cell">{row.name}</strong>
        <span class="end">
          <Status row={row} />
        </span>
        <DeleteButton row={row} tab={tab} />
      </div>
      <div class="narrow-line quiet small">
        <span class="cell">{[row.kind, row.namespace].filter(Boolean).join(" · ")}</span>
        <span class="end">
          <Age time={row.created} />
        </span>
      </div>
    </>
  );
}

export const EVENT_COLUMNS: readonly Column<EventPart>[] = [
  { id: "time", title: "Age", width: "58px", number: true, sort: (row) => byAge(row.time), cell: (row) => <Age time={row.time} /> },
  { id: "type", title: "Type", width: "92px", sort: (row) => row.type, cell: (row) => <StateBadge state={row.type === "Warning" ? "waits" : "off"} status={row.type} /> },
  { id: "reason", title: "Reason", width: "minmax(120px, 0.8fr)", always: true, sort: (row) => row.reason, cell: (row) => <strong>{row.reason}</strong> },
  { id: "object", title: "Object", width: "minmax(150px, 1fr)", sort: (row) => row.object, cell: (row) => <span title={row.object}>{row.object}</span> },
  { id: "message", title: "Message", width: "minmax(260px, 3fr)", sort: (row) => row.message, cell: (row) => <span title={row.message}>{row.message}</span> },
  { id: "count", title: "Count", width: "60px", number: true, sort: (row) => row.count, cell: (row) => row.count },
  { id: "namespace", title: "Namespace", width: "minmax(86px, 0.6fr)", sort: (row) => row.namespace, cell: (row) => row.namespace || none },
  { id: "source", title: "Source", width: "minmax(110px, 0.8fr)", extra: true, sort: (row) => row.source, cell: (row) => row.source || none },
];

export function NarrowEvent({ row }: { row: EventPart }) {
  return (
    <>
      <div class="narrow-line">
        <StateBadge state={row.type === "Warning" ? "waits" : "off"} status={row.reason} />
        <span class="cell quiet">{row.object}</span>
        <span class="end quiet small">
          <Age time={row.time} />
        </span>
      </div>
      <div class="narrow-line small">
        <span class="cell">{row.message}</span>
      </div>
    </>
  );
}
