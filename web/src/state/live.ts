import { type ReadonlySignal, type Signal, computed, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { type Change, type Lost, type Reset, type Row, Stream, changed } from "../api/stream";
import type { EventPart, MachineRow, ObjectRow, TaskRow, UsageRow } from "../generated/answers";

/** The topics of the stream with their rows. */
export interface Topics {
  machines: MachineRow;
  usage: UsageRow;
  tasks: TaskRow;
  events: EventPart;
  images: ObjectRow;
  volumes: ObjectRow;
  networks: ObjectRow;
  snapshots: ObjectRow;
  pools: ObjectRow;
  providers: ObjectRow;
  migrations: ObjectRow;
}
export type Topic = keyof Topics;

interface Store {
  rows: Signal<ReadonlyMap<string, Row>>;
  ready: Signal<boolean>;
}

const stores = new Map<string, Store>();
const followers = new Map<string, number>();
// The palette, the task bar and every list need these.
const ALWAYS: readonly Topic[] = ["machines", "tasks"];
// A page that is opened again soon finds its topic still followed.
const KEPT_MS = 20_000;

/** `closed`: the console is away. `lost`: the console is there, the server behind it is not. */
export type Connection = { state: "connecting" | "open" | "closed" } | ({ state: "lost" } & Lost);
export const connection: Signal<Connection> = signal<Connection>({ state: "connecting" });

function store(topic: string): Store {
  let found = stores.get(topic);
  if (!found) {
    found = { rows: signal(new Map()), ready: signal(false) };
    stores.set(topic, found);
  }
  return found;
}

/** The rows of a topic by id. Without `useTopic` nobody keeps them fresh. */
export function rowsOf<T extends Topic>(topic: T): ReadonlySignal<ReadonlyMap<string, Topics[T]>> {
  return store(topic).rows as unknown as ReadonlySignal<ReadonlyMap<string, Topics[T]>>;
}

/** Is the list of a topic known? */
export const readyOf = (topic: Topic): ReadonlySignal<boolean> => store(topic).ready;

/** The machine of a place, as long as it is in the list. */
export const machineOf = (place: string): ReadonlySignal<MachineRow | undefined> => computed(() => rowsOf("machines").value.get(place));

/** Keep a topic fresh while the component lives, and return its rows. */
export function useTopic<T extends Topic>(topic: T): ReadonlySignal<ReadonlyMap<string, Topics[T]>> {
  useEffect(() => {
    count(topic, 1);
    return () => void setTimeout(() => count(topic, -1), KEPT_MS);
  }, [topic]);
  return rowsOf(topic);
}

const stream = new Stream({
  opened: () => (connection.value = { state: "open" }),
  closed: () => (connection.value = { state: "closed" }),
  lost: (lost) => (connection.value = { state: "lost", ...lost }),
  reset,
  change: (each) => enqueue(each),
});

let pending: Change[] = [];

function reset({ topic, rows }: Reset): void {
  pending = pending.filter((each) => each.topic !== topic);
  const { rows: kept, ready } = store(topic);
  kept.value = new Map(rows.map((row) => [row.id, row]));
  ready.value = true;
  if (connection.value.state === "lost") connection.value = { state: "open" };
}

// Many changes in one turn draw the page once.
function enqueue(change: Change): void {
  pending.push(change);
  if (pending.length === 1) setTimeout(flush, 50);
}

function flush(): void {
  const changes = pending;
  pending = [];
  for (const topic of new Set(changes.map((each) => each.topic))) {
    const { rows } = store(topic);
    rows.value = changed(rows.value, {
      set: [...latest(changes.filter((each) => each.topic === topic)).values()].filter((row) => row !== null),
      gone: [...latest(changes.filter((each) => each.topic === topic))].filter(([, row]) => row === null).map(([id]) => id),
    });
  }
}

/** The last word about each row; null is gone. */
function latest(changes: Change[]): Map<string, Row | null> {
  const found = new Map<string, Row | null>();
  for (const { set, gone } of changes) {
    for (const id of gone) found.set(id, null);
    for (const row of set) found.set(row.id, row);
  }
  return found;
}

function count(topic: Topic, by: 1 | -1): void {
  followers.set(topic, (followers.get(topic) ?? 0) + by);
  follow();
}

let following = false;
function follow(): void {
  if (!following) return;
  const wanted = [...followers].filter(([, number]) => number > 0).map(([topic]) => topic);
  stream.follow([...new Set([...ALWAYS, ...wanted])]);
}

/** Begin, with the topics that the first page is going to follow: each other set of topics would be another connection. */
export function start(topics: readonly Topic[]): void {
  following = true;
  for (const topic of topics) {
    count(topic, 1);
    setTimeout(() => count(topic, -1), KEPT_MS);
  }
  follow();
}

/** End, when nobody is signed in any more. The next person may see other rows, so none of these stay. */
export function stop(): void {
  following = false;
  stream.close();
  pending = [];
  for (const { rows, ready } of stores.values()) {
    rows.value = new Map();
    ready.value = false;
  }
}

/** Connect now instead of after the pause. */
export const reconnect = (): void => stream.connect();
