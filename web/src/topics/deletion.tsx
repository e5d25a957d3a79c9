import { remove } from "../api/client";
import type { Done, ObjectRow } from "../generated/answers";
import { ask } from "../parts/dialog";
import { Icon } from "../parts/icon";
import { complain, tell } from "../parts/toasts";
import type { Tab } from "../tables/columns";

/** The address of an object. The group of the core, and the namespace of an object without one, have no empty segments. */
export function objectPath(row: Pick<ObjectRow, "group" | "kind" | "namespace" | "name">): string {
  return `objects/${row.group || "core"}/${row.kind}/${row.namespace || "-"}/${row.name}`;
}

export function DeleteButton({ row, tab }: { row: ObjectRow; tab: Tab }) {
  return (
    <button
      type="button"
      class="button icon-only small"
      tabIndex={tab}
      aria-label={`Delete ${row.name}`}
      aria-disabled={row.keeps ? true : undefined}
      title={row.keeps ? `Cannot be deleted: ${row.keeps}` : "Delete"}
      onClick={() => begin(row)}
    >
      <Icon name="trash" />
    </button>
  );
}

function begin(row: ObjectRow): void {
  if (row.keeps) {
    complain(new Error(`${row.name} cannot be deleted: ${row.keeps}`));
    return;
  }
  ask({
    title: `Delete ${row.name}?`,
    text: (
      <p>
        The {row.kind} {row.name} {row.namespace && `in ${row.namespace}`} goes, with the data that it holds. This cannot be undone.
      </p>
    ),
    verb: `Delete ${row.name}`,
    danger: true,
    act: async () => {
      try {
        tell((await remove<Done>(objectPath(row))).text);
      } catch (thrown) {
        complain(thrown);
      }
    },
  });
}
