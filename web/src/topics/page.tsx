import { type Signal, signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { several } from "../format/amounts";
import type { ObjectRow } from "../generated/answers";
import { Icon } from "../parts/icon";
import { Spinner } from "../parts/spinner";
import { type Topic, readyOf, useTopic } from "../state/live";
import { isTexts, namespace, remembered } from "../state/preferences";
import { missing } from "../state/session";
import { type Column, ColumnChooser, type Tab, visible } from "../tables/columns";
import type { Order } from "../tables/order";
import { type Searchable, matcher } from "../tables/query";
import { Table } from "../tables/table";
import { EVENT_COLUMNS, NarrowEvent, NarrowObject, columnsOf } from "./columns";
import { type ObjectTopic, TOPICS } from "./topics";

interface State {
  query: Signal<string>;
  order: Signal<Order>;
  columns: Signal<string[] | null>;
}

const states = new Map<string, State>();

function stateOf(topic: string, order: Order): State {
  let found = states.get(topic);
  if (!found) {
    const isChoice = (value: unknown): value is string[] | null => value === null || isTexts(value);
    found = { query: signal(""), order: signal(order), columns: remembered<string[] | null>(`${topic}.columns`, null, isChoice) };
    states.set(topic, found);
  }
  return found;
}

/** The objects of a topic. */
export function TopicPage({ topic }: { topic: ObjectTopic }) {
  const { title, about, own, icon } = TOPICS[topic];
  const rows = useTopic(topic).value;
  const columns = useMemo(() => columnsOf(own), [topic]);
  return (
    <Listing
      topic={topic}
      title={title}
      about={about}
      rows={rows}
      columns={columns}
      first={{ column: "name", down: false }}
      search={(row) => ({
        text: [row.name, row.namespace, row.kind, row.status, ...Object.values(row.cells).flat(), ...row.machines].join("\n"),
        fields: { name: [row.name], state: [row.state, row.status], kind: [row.kind], namespace: [row.namespace], machine: row.machines },
      })}
      narrow={(row: ObjectRow, tab) => <NarrowObject row={row} tab={tab} />}
      nameOf={(row) => row.name}
      icon={<Icon name={icon} size={40} />}
    />
  );
}

/** All events. */
export function EventPage() {
  return (
    <Listing
      topic="events"
      title="Events"
      about="The server reports here what it does and what fails. Kubernetes keeps events for an hour."
      rows={useTopic("events").value}
      columns={EVENT_COLUMNS}
      first={{ column: "time", down: false }}
      search={(row) => ({
        text: [row.reason, row.message, row.object, row.namespace, row.type].join("\n"),
        fields: { reason: [row.reason], type: [row.type], object: [row.object], namespace: [row.namespace] },
      })}
      narrow={(row) => <NarrowEvent row={row} />}
      nameOf={(row) => row.reason}
      icon={<Icon name="event" size={40} />}
    />
  );
}

interface ListingProps<R extends { id: string; namespace: string }> {
  topic: Topic;
  title: string;
  about: string;
  rows: ReadonlyMap<string, R>;
  columns: readonly Column<R>[];
  first: Order;
  search: (row: R) => Searchable;
  narrow: (row: R, tab: Tab) => ComponentChildren;
  nameOf: (row: R) => string;
  icon: ComponentChildren;
}

const FIELDS = ["name", "state", "kind", "namespace", "machine", "reason", "type", "object"];

function Listing<R extends { id: string; namespace: string }>(props: ListingProps<R>) {
  const { topic, title, about, rows, columns, first, search, narrow, nameOf, icon } = props;
  const { query, order, columns: chosen } = stateOf(topic, first);
  const shown = useMemo(() => {
    const fits = matcher(query.value, FIELDS);
    // What has no namespace belongs to all of them.
    return [...rows.values()].filter((row) => (!namespace.value || !row.namespace || row.namespace === namespace.value) && (!query.value || fits(search(row))));
  }, [rows, query.value, namespace.value]);
  const seen = useMemo(() => visible(columns, chosen.value), [columns, chosen.value]);
  const gap = missing(topic);
  return (
    <main class="page" id="main" tabIndex={-1}>
      <div class="page-head">
        <h1>{title}</h1>
      </div>
      {!readyOf(topic).value && !gap ? (
        <Spinner label={`Reading ${title.toLowerCase()}`} />
      ) : rows.size === 0 ? (
        <div class="empty">
          {icon}
          <h2>No {title.toLowerCase()}</h2>
          <p>{gap || about}</p>
        </div>
      ) : (
        <>
          <div class="toolbar">
            <label class="search-box">
              <span class="for-readers">Search {title.toLowerCase()}</span>
              <Icon name="search" />
              <input class="input" type="search" placeholder={`Search ${title.toLowerCase()}`} value={query.value} onInput={(event) => (query.value = event.currentTarget.value)} />
            </label>
            <ColumnChooser columns={columns} chosen={chosen.value} choose={(ids) => (chosen.value = ids)} />
            <span class="quiet small" role="status">
              {shown.length === rows.size ? several(rows.size, "row") : `${shown.length} of ${several(rows.size, "row")}`}
            </span>
          </div>
          <Table label={title} columns={seen} chosen={chosen.value !== null} rows={shown} order={order} narrow={narrow} nameOf={nameOf} />
        </>
      )}
    </main>
  );
}
