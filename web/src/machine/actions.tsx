import { useId, useState } from "preact/hooks";
import { problemOf, type Problem } from "../api/problem";
import { go, link } from "../app/routes";
import type { ActionState, MachineDetail } from "../generated/answers";
import { perform } from "../machines/perform";
import { act } from "../machines/verbs";
import { Dialog, show } from "../parts/dialog";
import { Field } from "../parts/field";
import { Icon } from "../parts/icon";
import { Menu, type MenuItem } from "../parts/menu";
import { ProblemNote } from "../parts/problemnote";
import { tell } from "../parts/toasts";
import { ActionButton } from "./actionbutton";
import { snapshotName } from "./snapshottree";
import { arranged, reasonOf, verbOf } from "./verbs";

/** Sends a verb with its options and says what came of it. */
export async function send(place: string, verb: string, options: Record<string, unknown>, reload: () => void): Promise<void> {
  tell((await act(place, verb, options)).text);
  reload();
}

interface ActionsProps {
  place: string;
  detail: MachineDetail;
  reload: () => void;
}

/** The verbs of a machine. One that is not possible now stays where it is, and says why. */
export function Actions({ place, detail, reload }: ActionsProps) {
  const { header, menu } = arranged(detail.actions);
  const run = (action: ActionState): void => begin(action, { place, detail, reload });
  return (
    <div class="machine-actions" role="group" aria-label="Actions">
      {header.map((action) => (
        <ActionButton key={action.verb} action={action} run={() => run(action)} />
      ))}
      {menu.length > 0 && (
        <Menu
          label="More actions"
          button="button"
          items={() => menu.map((action) => itemOf(action, run))}
        >
          <Icon name="more" />
          <span>More</span>
        </Menu>
      )}
    </div>
  );
}

function itemOf(action: ActionState, run: (action: ActionState) => void): MenuItem {
  const { text, icon, danger = false } = verbOf(action.verb);
  return { text, icon, danger, reason: reasonOf(action), act: () => run(action) };
}

function begin({ verb }: ActionState, { place, detail, reload }: ActionsProps): void {
  const { name } = detail.row;
  if (verb === "snapshot") askSnapshot(place, detail, reload);
  else if (verb === "clone") askName({ title: `Clone ${name}`, label: "Name of the clone", value: `${name}-clone`, verb: "Clone", send: (text) => send(place, verb, { name: text }, reload) });
  else perform(verbOf(verb), [detail.row], verb === "delete" ? () => go(link("machines")) : undefined);
}

export function askSnapshot(place: string, detail: MachineDetail, reload: () => void): void {
  const value = snapshotName(detail.row.name, new Date(), detail.snapshots.map((each) => each.name));
  askName({ title: `Snapshot of ${detail.row.name}`, label: "Name", value, verb: "Take snapshot", send: (name) => send(place, "snapshot", { name }, reload) });
}

interface NameQuestion {
  title: string;
  label: string;
  value: string;
  verb: string;
  send: (name: string) => Promise<void>;
}

export function askName(question: NameQuestion): void {
  show((close) => <NameDialog {...question} close={close} />);
}

const NAME = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;

function NameDialog({ title, label, value, verb, send: deliver, close }: NameQuestion & { close: () => void }) {
  const [name, setName] = useState(value);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const wrong = name !== "" && !NAME.test(name) ? "Use lower-case letters, digits and hyphens; begin and end with a letter or digit." : "";
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (!name || wrong || busy) return;
    setBusy(true);
    try {
      await deliver(name);
      close();
    } catch (thrown) {
      setProblem(problemOf(thrown));
      setBusy(false);
    }
  };
  const form = useId();
  return (
    <Dialog
      title={title}
      close={close}
      footer={
        <>
          <button type="button" class="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" form={form} class="button primary" aria-disabled={!name || Boolean(wrong) || busy ? true : undefined}>
            {verb}
          </button>
        </>
      }
    >
      <form id={form} onSubmit={(event) => void submit(event)}>
        <Field
          label={label}
          error={wrong}
          control={(props) => <input {...props} class="input" value={name} maxLength={63} autocomplete="off" spellcheck={false} onInput={(event) => setName(event.currentTarget.value)} />}
        />
        {problem && <ProblemNote problem={problem} />}
      </form>
    </Dialog>
  );
}
