import { useEffect, useRef, useState } from "preact/hooks";
import { post } from "../api/client";
import { type Problem, problemOf } from "../api/problem";
import { several } from "../format/amounts";
import type { Applied, MachineDetail, ObjectPart, Plan } from "../generated/answers";
import { ask } from "../parts/dialog";
import { Icon } from "../parts/icon";
import { ProblemNote } from "../parts/problemnote";
import { loadSheet } from "../parts/sheet";
import { tell } from "../parts/toasts";
import { openEditor, type YamlEditor } from "./codemirror";
import { DiffView } from "./diffview";
import { type Edit, isBehind, isDirty, isRenumbered, isUnread, questionOf, refusalOf } from "./edit";
import sheet from "./editor.css?sheet";
import { merge } from "./merge";
import { PlanView } from "./planview";

await loadSheet(sheet);

interface PanelProps {
  detail: MachineDetail;
  reload: () => void;
}

/** The objects of a machine as YAML. */
export function EditorPanel({ detail, reload }: PanelProps) {
  const [chosen, setChosen] = useState("");
  const object = detail.objects.find((each) => idOf(each) === chosen) ?? detail.objects.find((each) => each.role === "written") ?? detail.objects[0];
  if (!object) return <p class="quiet">The machine has no objects that can be shown.</p>;
  return (
    <section class="editor" aria-labelledby="editor-title">
      <div class="card-head">
        <h2 id="editor-title">YAML</h2>
        <label class="object-choice">
          <span class="for-readers">Object</span>
          <select class="input" value={idOf(object)} onChange={(event) => setChosen(event.currentTarget.value)}>
            {detail.objects.map((each) => (
              <option key={idOf(each)} value={idOf(each)}>
                {each.kind} {each.name} {each.role === "made" ? "(made by a controller)" : ""}
              </option>
            ))}
          </select>
        </label>
      </div>
      <ObjectEditor key={idOf(object)} object={object} reload={reload} />
    </section>
  );
}

function idOf(object: ObjectPart): string {
  return `${object.group}/${object.kind}/${object.namespace}/${object.name}`;
}

const PLAN_PAUSE_MS = 500;
const CONFLICT = 409;

interface Planned {
  text: string;
  plan: Plan | null;
  problem: Problem | null;
}

/** The plan of a text, made again when the typing pauses. */
function usePlan(base: string, draft: string): Planned {
  const [planned, setPlanned] = useState<Planned>({ text: "", plan: null, problem: null });
  useEffect(() => {
    const abort = new AbortController();
    const read = async (): Promise<void> => {
      try {
        const plan = await post<Plan>("plan", { before: base, after: draft }, abort.signal);
        setPlanned({ text: draft, plan, problem: null });
      } catch (thrown) {
        if (!abort.signal.aborted) setPlanned({ text: draft, plan: null, problem: problemOf(thrown) });
      }
    };
    const timer = setTimeout(() => void read(), PLAN_PAUSE_MS);
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [base, draft]);
  return planned;
}

interface Outcome {
  applied: Applied | null;
  dryRun: boolean;
  problem: Problem | null;
}

function ObjectEditor({ object, reload }: { object: ObjectPart; reload: () => void }) {
  const parent = useRef<HTMLDivElement>(null);
  const editor = useRef<YamlEditor | null>(null);
  const [base, setBase] = useState(object.yaml);
  const [draft, setDraft] = useState(object.yaml);
  const [tab, setTab] = useState<"plan" | "diff">("plan");
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const [busy, setBusy] = useState(false);
  const planned = usePlan(base, draft);
  const edit: Edit = { base, draft, stored: object.yaml };
  const readOnly = object.role === "made" ? "A controller makes this object and would undo the edit. Change the object that it is made of." : "";
  const refusal = refusalOf(edit, planned.plan, planned.text, readOnly);
  const start = (text: string): void => {
    setBase(object.yaml);
    setDraft(text);
    editor.current?.replace(text);
  };
  // An object that changes while nobody edits it is simply shown as it is now.
  useEffect(() => {
    if (!isDirty(edit) && object.yaml !== base) start(object.yaml);
    else if (isDirty(edit) && isRenumbered(edit)) start(merge(base, draft, object.yaml).text);
  }, [object.yaml]);
  const send = async (dryRun: boolean, force = false): Promise<void> => {
    setBusy(true);
    try {
      const applied = await post<Applied>("apply", { yaml: draft, dryRun, force });
      setOutcome({ applied, dryRun, problem: null });
      if (!dryRun) {
        tell(`Saved ${object.kind} ${object.name}`);
        setBase(draft);
      }
    } catch (thrown) {
      setOutcome({ applied: null, dryRun, problem: problemOf(thrown) });
    }
    setBusy(false);
    reload();
  };
  const save = (): void => {
    if (refusal || busy || !planned.plan) return;
    const question = questionOf(planned.plan);
    if (question) ask({ title: question, text: planned.plan.summary, verb: "Save", danger: true, act: () => send(false) });
    else void send(false);
  };
  const saveNow = useRef(save);
  saveNow.current = save;
  useEffect(() => {
    if (!parent.current) return;
    const options = { text: draft, label: `${object.kind} ${object.name} as YAML`, readOnly: readOnly !== "", onChange: setDraft, onSave: () => saveNow.current() };
    editor.current = openEditor(parent.current, options);
    return () => editor.current?.dispose();
  }, []);
  useEffect(() => editor.current?.show(planned.text === draft ? (planned.plan?.findings ?? []) : []), [planned]);
  const goTo = (line: number, column: number): void => editor.current?.goTo(line, column);
  return (
    <>
      <Bar {...{ refusal, busy, readOnly }} dirty={isDirty(edit)} save={save} dryRun={() => void send(true)} discard={() => start(object.yaml)} find={() => editor.current?.find()} />
      {isDirty(edit) && isBehind(edit) && <Behind edit={edit} take={() => start(object.yaml)} rebase={start} />}
      {outcome && <OutcomeNote outcome={outcome} close={() => setOutcome(null)} takeOver={isUnread(draft) ? () => void send(false, true) : null} />}
      <div class="editor-columns">
        {/* Keys of the page do not see that a person types in a shadow tree. */}
        <div ref={parent} class="editor-text" data-keys onKeyDown={(event) => event.stopPropagation()} />
        <div class="editor-side">
          <div class="segments" role="radiogroup" aria-label="Beside the text">
            <label>
              <input type="radio" name="editor-side" checked={tab === "plan"} onChange={() => setTab("plan")} />
              <span>Plan</span>
            </label>
            <label>
              <input type="radio" name="editor-side" checked={tab === "diff"} onChange={() => setTab("diff")} />
              <span>Difference</span>
            </label>
          </div>
          {tab === "diff" && <DiffView before={object.yaml} after={draft} label="Difference from the stored object" />}
          {tab === "plan" && planned.problem && <ProblemNote problem={planned.problem} />}
          {tab === "plan" && <PlanView plan={planned.plan} busy={planned.text !== draft} dirty={isDirty(edit)} goTo={goTo} />}
        </div>
      </div>
      <p class="quiet small">
        <kbd>Esc</kbd>, then <kbd>Tab</kbd> leaves the text. <kbd>Ctrl</kbd>+<kbd>F</kbd> searches, <kbd>Ctrl</kbd>+<kbd>S</kbd> saves.
      </p>
    </>
  );
}

interface BarProps {
  refusal: string;
  busy: boolean;
  dirty: boolean;
  readOnly: string;
  save: () => void;
  dryRun: () => void;
  discard: () => void;
  find: () => void;
}

function Bar({ refusal, busy, dirty, readOnly, save, dryRun, discard, find }: BarProps) {
  const off = refusal !== "" || busy;
  return (
    <div class="editor-bar">
      {!readOnly && (
        <>
          <button type="button" class="button primary" aria-disabled={off ? true : undefined} aria-describedby="editor-refusal" onClick={save}>
            <Icon name="save" />
            <span>Save</span>
          </button>
          <button type="button" class="button" aria-disabled={off ? true : undefined} aria-describedby="editor-refusal" onClick={() => !off && dryRun()}>
            Dry run
          </button>
          <button type="button" class="button" aria-disabled={dirty ? undefined : true} onClick={() => dirty && discard()}>
            Discard
          </button>
        </>
      )}
      <button type="button" class="button" onClick={find}>
        Find
      </button>
      <p id="editor-refusal" class="quiet small">
        {refusal}
      </p>
    </div>
  );
}

/** Somebody else wrote the object meanwhile. */
function Behind({ edit, take, rebase }: { edit: Edit; take: () => void; rebase: (text: string) => void }) {
  const [shown, setShown] = useState(false);
  const merged = merge(edit.base, edit.draft, edit.stored);
  return (
    <div class="note waits" role="alert">
      <Icon name="warning" />
      <div>
        <p class="note-title">The stored object changed while you edited it</p>
        <p>
          {merged.conflicts.length === 0
            ? "Your lines and theirs do not touch each other."
            : `Both sides changed ${several(merged.conflicts.length, "place")}. Your lines stay there if you bring your edit onto it.`}
        </p>
        {merged.conflicts.map((each) => (
          <div key={each.line} class="conflict" role="group" aria-label={`Line ${each.line}`}>
            <ConflictSide title={`Yours, line ${each.line}`} lines={each.mine} />
            <ConflictSide title="Stored" lines={each.theirs} />
          </div>
        ))}
        <p class="note-tools">
          <button type="button" class="button small" onClick={() => rebase(merged.text)}>
            Bring my edit onto it
          </button>
          <button type="button" class="button small" onClick={take}>
            Take the stored object
          </button>
          <button type="button" class="button small" aria-expanded={shown} onClick={() => setShown(!shown)}>
            Show their changes
          </button>
        </p>
        {shown && <DiffView before={edit.base} after={edit.stored} label="What changed in the stored object" />}
      </div>
    </div>
  );
}

function ConflictSide({ title, lines }: { title: string; lines: readonly string[] }) {
  return (
    <div class="conflict-side">
      <p class="quiet small">{title}</p>
      <pre class="mono">{lines.length > 0 ? lines.join("\n") : "(removed)"}</pre>
    </div>
  );
}

interface OutcomeProps {
  outcome: Outcome;
  close: () => void;
  /** Saves again with the fields of other managers; null where the object's version decides. */
  takeOver: (() => void) | null;
}

function OutcomeNote({ outcome, close, takeOver }: OutcomeProps) {
  const { applied, problem, dryRun } = outcome;
  if (problem) {
    return (
      <>
        <ProblemNote problem={problem} />
        {problem.code === CONFLICT && (
          <p class="note-tools">
            {takeOver ? (
              <button type="button" class="button small" onClick={takeOver}>
                Save, and take the fields over
              </button>
            ) : (
              <span class="quiet small">Your text stays as it is. The page reads the stored object, and offers to bring your edit onto it.</span>
            )}
          </p>
        )}
      </>
    );
  }
  const done = applied?.objects.map((each) => `${each.kind} ${each.name} ${dryRun ? `would be ${each.result}` : each.result}`).join(", ");
  return (
    <div class="note good" role="status">
      <Icon name="check" />
      <div>
        <p class="note-title">{dryRun ? `The server accepts the edit: ${done}. Nothing was written.` : `Saved: ${done}.`}</p>
        {applied?.warnings.map((warning) => <p key={warning}>{warning}</p>)}
      </div>
      <button type="button" class="button icon-only" aria-label="Close" onClick={close}>
        <Icon name="close" />
      </button>
    </div>
  );
}
