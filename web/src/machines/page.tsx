import { type Signal, signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { openCreate } from "../app/keys";
import { go, machineLink } from "../app/routes";
import { several } from "../format/amounts";
import type { MachineRow, State } from "../generated/answers";
import { Icon } from "../parts/icon";
import { Spinner } from "../parts/spinner";
import { readyOf, useTopic } from "../state/live";
import { isTexts, namespace, remembered } from "../state/preferences";
import { askRights } from "../state/rights";
import { me, missing } from "../state/session";
import { ColumnChooser, visible } from "../tables/columns";
import type { Order } from "../tables/order";
import { Table } from "../tables/table";
import { COLUMNS, narrowMachine } from "./columns";
import { Empty } from "./empty";
import { SavedFilters } from "./filters";
import { perform } from "./perform";
import { RowMenu } from "./rowmenu";
import { GROUPS, found } from "./search";
import { BULK, VERBS, refusalOf } from "./verbs";

const isOrder = (value: unknown): value is Order =>
  typeof value === "object" && value !== null && "column" in value && "down" in value && typeof value.column === "string" && typeof value.down === "boolean";
const isChoice = (value: unknown): value is string[] | null => value === null || isTexts(value);

const order = remembered<Order>("machines.order", { column: "name", down: false }, isOrder);
const chosenColumns = remembered<string[] | null>("machines.columns", null, isChoice);
const query = signal("");
const states = signal<readonly State[]>([]);
const selection = signal<ReadonlySet<string>>(new Set());

export function MachineList() {
  const all = useTopic("machines").value;
  useTopic("usage");
  const inQuery = useMemo(() => found(all.values(), query.value, namespace.value), [all, query.value, namespace.value]);
  // The first figures may change the order; later ones do not, because rows that jump every few seconds cannot be read.
  const measured = readyOf("usage").value;
  const rows = useMemo(() => inQuery.filter((row) => !states.value.length || states.value.includes(row.state)), [inQuery, states.value, measured]);
  const columns = useMemo(() => visible(COLUMNS, chosenColumns.value), [chosenColumns.value]);
  const chosen = rows.filter((row) => selection.value.has(row.id));
  // A cluster without a kind of machines has nothing to make them of.
  const served = me()?.dialects.length !== 0;
  // Without machines, the page depends on what the user may do.
  if (!readyOf("machines").value || (all.size === 0 && !me())) return <Spinner label="Reading the machines" />;
  return (
    <main class="page" id="main" tabIndex={-1}>
      <div class="page-head">
        <h1>Machines</h1>
        <span class="grow" />
        <button type="button" class="button primary" aria-disabled={served ? undefined : true} title={served ? undefined : missing("create")} onClick={() => served && openCreate()}>
          <Icon name="add" />
          New machine
        </button>
      </div>
      {all.size === 0 ? (
        <Empty />
      ) : (
        <>
          <div class="toolbar">
            <label class="search-box">
              <span class="for-readers">Search the machines</span>
              <Icon name="search" />
              <input
                class="input"
                type="search"
                placeholder="Name, address, state:bad, label:app=web …"
                title={`Words, or a field with a value: ${"name state node dialect namespace ip image guest label"}. A minus excludes.`}
                value={query.value}
                onInput={(event) => (query.value = event.currentTarget.value)}
              />
            </label>
            <ColumnChooser columns={COLUMNS} chosen={chosenColumns.value} choose={(ids) => (chosenColumns.value = ids)} />
          </div>
          <div class="chips" role="group" aria-label="Filters">
            <StateChips rows={inQuery} states={states} />
            <SavedFilters query={query} />
          </div>
          {chosen.length > 0 && <SelectionBar rows={chosen} />}
          <p class="for-readers" role="status">
            {several(rows.length, "machine")} shown
          </p>
          {rows.length ? (
            <Table
              label="Machines"
              columns={columns}
              chosen={chosenColumns.value !== null}
              rows={rows}
              order={order}
              selection={selection}
              open={(row) => go(machineLink(row.id))}
              narrow={narrowMachine}
              nameOf={(row) => row.name}
            />
          ) : (
            <NothingFound />
          )}
          <RowMenu />
        </>
      )}
    </main>
  );
}

function StateChips({ rows, states }: { rows: readonly MachineRow[]; states: Signal<readonly State[]> }) {
  const numberOf = (group: readonly State[]): number => rows.reduce((sum, row) => sum + Number(group.includes(row.state)), 0);
  return (
    <>
      <button type="button" class="chip" aria-pressed={!states.value.length} onClick={() => (states.value = [])}>
        All <span class="number">{rows.length.toLocaleString("en")}</span>
      </button>
      {GROUPS.map((group) => {
        const pressed = states.value === group.states;
        const number = numberOf(group.states);
        if (!number && !pressed) return null;
        return (
          <button key={group.text} type="button" class="chip" aria-pressed={pressed} onClick={() => (states.value = pressed ? [] : group.states)}>
            {group.text} <span class="number">{number.toLocaleString("en")}</span>
          </button>
        );
      })}
    </>
  );
}

function SelectionBar({ rows }: { rows: readonly MachineRow[] }) {
  const clear = (): void => void (selection.value = new Set());
  useEffect(() => rows.forEach((row) => askRights(row.id)), [rows]);
  return (
    <div class="selection" role="toolbar" aria-label="Actions for the selection">
      <strong>{several(rows.length, "machine")} selected</strong>
      {VERBS.filter(({ verb }) => BULK.includes(verb)).map((verb) => {
        const able = rows.filter((row) => !refusalOf(verb.verb, row));
        const text = able.length === rows.length ? verb.text : `${verb.text} (${able.length})`;
        const reason = able.length ? (able.length < rows.length ? `${several(rows.length - able.length, "machine")} cannot: ${reasons(rows, verb.verb)}` : "") : reasons(rows, verb.verb);
        return (
          <button
            key={verb.verb}
            type="button"
            class={`button small${verb.danger ? " danger" : ""}`}
            aria-disabled={able.length ? undefined : true}
            title={reason || undefined}
            onClick={() => able.length && perform(verb, able, clear)}
          >
            <Icon name={verb.icon} />
            {text}
          </button>
        );
      })}
      <button type="button" class="button small plain" onClick={clear}>
        Clear
      </button>
    </div>
  );
}

/** The different reasons against a verb. */
const reasons = (rows: readonly MachineRow[], verb: string): string => [...new Set(rows.map((row) => refusalOf(verb, row)).filter(Boolean))].slice(0, 3).join(" ");

function NothingFound() {
  return (
    <div class="empty">
      <Icon name="search" size={32} />
      <h2>No machine fits</h2>
      <p>Nothing in {namespace.value ? `the namespace ${namespace.value}` : "any namespace"} fits the search and the filters.</p>
      <button
        type="button"
        class="button"
        onClick={() => {
          query.value = "";
          states.value = [];
        }}
      >
        Clear the filters
      </button>
    </div>
  );
}
