import { several } from "../format/amounts";
import type { MachineRow } from "../generated/answers";
import { Dialog, ask, show } from "../parts/dialog";
import { complain, tell } from "../parts/toasts";
import { type Outcome, type Verb, act, actOnAll } from "./verbs";

const machines = (rows: readonly MachineRow[]): string => (rows.length === 1 && rows[0] ? rows[0].name : several(rows.length, "machine"));

/** Do a verb for machines: ask first if it cannot be undone, then say what came of it. */
export function perform(verb: Verb, rows: readonly MachineRow[], after: () => void = () => {}): void {
  const begin = async (): Promise<void> => {
    after();
    await (rows.length === 1 && rows[0] ? performOne(verb, rows[0]) : performAll(verb, rows));
  };
  if (!verb.needs) {
    void begin();
    return;
  }
  ask({
    title: `${verb.text} ${machines(rows)}?`,
    verb: `${verb.text} ${machines(rows)}`,
    danger: true,
    act: begin,
    text: (
      <>
        <p>{CONSEQUENCES[verb.verb] ?? "This cannot be undone."}</p>
        {rows.length > 1 && <Names rows={rows} />}
      </>
    ),
  });
}

const CONSEQUENCES: Readonly<Record<string, string>> = {
  delete: "The machine goes, and so do the disks that belong to it. This cannot be undone.",
  reset: "The guest loses what it has not written to disk, as when somebody presses the reset button.",
};

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

async function performOne(verb: Verb, row: MachineRow): Promise<void> {
  try {
    tell((await act(row.id, verb.verb)).text);
  } catch (thrown) {
    complain(thrown);
  }
}

async function performAll(verb: Verb, rows: readonly MachineRow[]): Promise<void> {
  const outcome = await actOnAll(rows, verb.verb);
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
