import type { MachineRow, State } from "../generated/answers";
import { type Searchable, matcher } from "../tables/query";

/** The fields of a search, such as `state:bad`. */
export const FIELDS = ["name", "state", "node", "dialect", "namespace", "ip", "image", "guest", "label"] as const;

/** The search of the list, and the states of the chips above it. */
export function searchable(row: MachineRow): Searchable {
  const labels = Object.entries(row.labels).map(([key, value]) => `${key}=${value}`);
  return {
    text: [row.name, row.namespace, row.status, row.node, row.image, row.guest, row.dialect, ...row.ips, ...labels].join("\n"),
    fields: {
      name: [row.name],
      state: [row.state, row.status],
      node: [row.node],
      dialect: [row.dialect],
      namespace: [row.namespace],
      ip: row.ips,
      image: [row.image],
      guest: [row.guest],
      label: labels,
    },
  };
}

/** The rows that a search and a namespace leave. */
export function found(rows: Iterable<MachineRow>, query: string, namespace: string): MachineRow[] {
  const fits = matcher(query, FIELDS);
  return [...rows].filter((row) => (!namespace || row.namespace === namespace) && (!query || fits(searchable(row))));
}

export interface StateGroup {
  text: string;
  states: readonly State[];
}

/** The chips above the list. */
export const GROUPS: readonly StateGroup[] = [
  { text: "Running", states: ["good"] },
  { text: "Stopped", states: ["off"] },
  { text: "In progress", states: ["going"] },
  { text: "Waiting", states: ["waits"] },
  { text: "Failing", states: ["bad", "unknown"] },
];
