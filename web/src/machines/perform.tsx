import { useSignal } from "@preact/signals";
import { several } from "../format/amounts";
import type { MachineRow } from "../generated/answers";
import { Dialog, show } from "../parts/dialog";
import { complain, tell } from "../parts/toasts";
import { type Outcome, type Verb, act, actOnAll } from "./verbs";

const machines = (rows: readonly MachineRow[]): string => (rows.length === 1 && rows[0] ? rows[0].name : several(rows.length, "machine"));

type Options = Record<string, unknown>;

/** Do a verb for machines: ask first if it cannot be undone, then say what came of it. */
export function perform(verb: Verb, rows: readonly MachineRow[], after: () => void = () => {}): void {
  const begin = async (options: Options): Promise<void> => {
    after();
    await (rows.length === 1 && rows[0] ? performOne(verb, rows[0], options) : performAll(verb, rows, options));
  };
  if (verb.asks) show((close) => <Consent verb={verb} rows={rows} close={close} begin={begin} />);
  else void begin({});
}

const CONSEQUENCES: Readonly<Record<string, string>> = {
  delete: "The guest shuts down, and the machine goes. Its disks stay, unless you delete them, too.",
  reset: "The guest loses what it has not written to disk, as when somebody presses the reset button.",
};

interface ConsentProps {
  verb: Verb;
  rows: readonly MachineRow[];
  close: () => void;
  begin: (options: Options) => Promise<void>;
}

function Consent({ verb, rows, close, begin }: ConsentProps) {
  const purge = useSignal(false);
  return (
    <Dialog
      title={`${verb.text} ${machines(rows)}?`}
      close={close}
      footer={
        <>
          <button type="button" class="button" data-focus onClick={close}>
            Cancel
          </button>
          <button
            type="button"
            class="button danger"
            onClick={() => {
              close();
              void begin(purge.value ? { purge: true } : {});
            }}
          >
            {verb.text} {machines(rows)}
          </button>
        </>
      }
    >
      <div class="prose">
        <p>{CONSEQUENCES[verb.verb] ?? "This cannot be undone."}</p>
        {rows.length > 1 && <Names rows={rows} />}
        {verb.verb === "delete" && (
          <label class="check">
            <input type="checkbox" checked={purge.value} onChange={(event) => (purge.value = event.currentTarget.checked)} />
            <span>Delete the disks with their data, too; this cannot be undone</span>
          </label>
        )}
      </div>
    </Dialog>
  );
}

const SHOWN_NAMES = 12;

function Names({ rows }: { rows: readonly MachineRow[] }) {
  return (
    <ul>
      {rows.slice(0, SHOWN_NAMES).map((row) => (
        <li key={row.id}>
          {row.name} <span class="quiet">in {row.namespace}</span>
        </li>
      ))}
      {rows.length > SHOWN_NAMES && <li>and {rows.length - SHOWN_NAMES} more</li>}
    </ul>
  );
}

async function performOne(verb: Verb, row: MachineRow, options: Options): Promise<void> {
  try {
    tell((await act(row.id, verb.verb, options)).text);
  } catch (thrown) {
    complain(thrown);
  }
}

async function performAll(verb: Verb, rows: readonly MachineRow[], options: Options): Promise<void> {
  const outcome = await actOnAll(rows, verb.verb, options);
  if (outcome.done.length) tell(`${verb.past} ${machines(outcome.done)}`);
  if (outcome.failed.length) showFailures(verb, outcome);
}

function showFailures(verb: Verb, { failed }: Outcome): void {
  show((close) => (
    <Dialog title={`${verb.text}: ${several(failed.length, "machine")} refused`} close={close}>
      <dl class="facts">
        {failed.map(({ row, problem }) => (
          <>
            <dt>{row.name}</dt>
            <dd>
              {problem.message}
              {problem.why && <p class="quiet">{problem.why}</p>}
              {problem.fix && <p>{problem.fix}</p>}
            </dd>
          </>
        ))}
      </dl>
    </Dialog>
  ));
}
