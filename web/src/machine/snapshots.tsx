import { remove } from "../api/client";
import type { ActionState, MachineDetail, ObjectRow, SnapshotPart } from "../generated/answers";
import { bytes } from "../format/amounts";
import { Age } from "../parts/age";
import { ask } from "../parts/dialog";
import { complain, tell } from "../parts/toasts";
import { useTopic } from "../state/live";
import { objectPath } from "../topics/deletion";
import { ActionButton } from "./actionbutton";
import { askSnapshot, send } from "./actions";
import { treeOf, type SnapshotNode } from "./snapshottree";

interface SnapshotsProps {
  place: string;
  detail: MachineDetail;
  reload: () => void;
}

/** Snapshots as a tree: what follows what, and from which one the disks go on. */
export function Snapshots({ place, detail, reload }: SnapshotsProps) {
  const rows = useTopic("snapshots").value;
  const tree = treeOf(detail.snapshots);
  const create = stateOf(detail, "snapshot");
  const context = { place, detail, reload, rows: [...rows.values()] };
  return (
    <section class="card wide" aria-labelledby="snapshots-title">
      <div class="card-head">
        <h2 id="snapshots-title">Snapshots</h2>
        <ActionButton small action={create} run={() => askSnapshot(place, detail, reload)} />
      </div>
      {tree.length === 0 ? (
        <p class="quiet">There are no snapshots. A snapshot keeps the disks as they are now, and a restore brings them back.</p>
      ) : (
        <ul class="snapshot-tree">
          {tree.map((node) => (
            <Branch key={node.snapshot.name} node={node} context={context} />
          ))}
        </ul>
      )}
    </section>
  );
}

interface Context extends SnapshotsProps {
  rows: ObjectRow[];
}

function Branch({ node, context }: { node: SnapshotNode; context: Context }) {
  const { snapshot, children } = node;
  const row = context.rows.find((each) => each.name === snapshot.name && each.machines.includes(context.place));
  const facts = [snapshot.consistency, snapshot.size >= 0 ? bytes(snapshot.size) : "", snapshot.state].filter(Boolean);
  return (
    <li>
      <div class="snapshot">
        <span class="snapshot-dot" data-current={snapshot.current} aria-hidden="true" />
        <span class="snapshot-text">
          <b>{snapshot.name}</b>
          {snapshot.current && <span class="tag">the disks go on from here</span>}
          <span class="quiet">
            <Age time={snapshot.created} /> ago · {facts.join(" · ")}
          </span>
        </span>
        <span class="snapshot-actions">
          <ActionButton small action={stateOf(context.detail, "restore")} run={() => askRestore(snapshot, context)} />
          <ActionButton small action={deletion(row)} run={() => row && askDelete(row, snapshot, context)} />
        </span>
      </div>
      {children.length > 0 && (
        <ul>
          {children.map((each) => (
            <Branch key={each.snapshot.name} node={each} context={context} />
          ))}
        </ul>
      )}
    </li>
  );
}

function stateOf(detail: MachineDetail, verb: string): ActionState {
  return detail.actions.find((action) => action.verb === verb) ?? { verb, allowed: false, reason: "The server does not offer this for the machine." };
}

function deletion(row: ObjectRow | undefined): ActionState {
  if (!row) return { verb: "delete", allowed: false, reason: "The list of snapshots is not here yet." };
  return { verb: "delete", allowed: row.keeps === "", reason: row.keeps };
}

function askRestore(snapshot: SnapshotPart, { place, detail, reload }: Context): void {
  ask({
    title: `Restore ${snapshot.name}?`,
    verb: "Restore",
    danger: true,
    text: (
      <>
        <p>The disks of {detail.row.name} become what they were at this snapshot.</p>
        <p>Everything that the guest has written since is lost, unless another snapshot has it.</p>
      </>
    ),
    act: () => send(place, "restore", { snapshot: snapshot.name }, reload).catch(complain),
  });
}

function askDelete(row: ObjectRow, snapshot: SnapshotPart, { reload }: Context): void {
  ask({
    title: `Delete the snapshot ${snapshot.name}?`,
    verb: "Delete snapshot",
    danger: true,
    text: "The machine keeps its disks as they are. A restore of this snapshot is not possible any more.",
    act: async () => {
      try {
        await remove(objectPath(row));
        tell(`Deleted the snapshot ${snapshot.name}`);
      } catch (thrown) {
        complain(thrown);
      }
      reload();
    },
  });
}
