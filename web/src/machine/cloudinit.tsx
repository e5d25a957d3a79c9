import { useEffect, useState } from "preact/hooks";
import { getText } from "../api/client";
import { type Problem, problemOf } from "../api/problem";
import type { CloudInit } from "../generated/answers";
import { ProblemNote } from "../parts/problemnote";
import { Spinner } from "../parts/spinner";
import { plain } from "./plaintext";

/** What cloud-init gets, and what the guest wrote while it booted. */
export function CloudInitView({ place, cloudInit }: { place: string; cloudInit: CloudInit }) {
  const none = !cloudInit.userData && !cloudInit.networkData;
  return (
    <>
      <section class="card wide" aria-labelledby="cloudinit-title">
        <h2 id="cloudinit-title">Cloud-init</h2>
        {none && !cloudInit.note && <p class="quiet">The machine has no cloud-init documents.</p>}
        {cloudInit.note && <p>{cloudInit.note}</p>}
        <Document title="User data" text={cloudInit.userData} />
        <Document title="Network data" text={cloudInit.networkData} />
      </section>
      <LogView place={place} />
    </>
  );
}

function Document({ title, text }: { title: string; text: string }) {
  if (!text) return null;
  return (
    <>
      <h3>{title}</h3>
      <pre class="text-block" tabIndex={0} aria-label={title}>
        {text}
      </pre>
    </>
  );
}

const KINDS = [
  { id: "boot", label: "Boot" },
  { id: "cloud-init", label: "Cloud-init" },
  { id: "console", label: "Whole console" },
] as const;

function LogView({ place }: { place: string }) {
  const [kind, setKind] = useState<(typeof KINDS)[number]["id"]>("boot");
  const [count, setCount] = useState(0);
  const [state, setState] = useState<{ text: string | null; problem: Problem | null }>({ text: null, problem: null });
  useEffect(() => {
    const abort = new AbortController();
    setState({ text: null, problem: null });
    getText(`machines/${place}/log`, { kind }, abort.signal).then(
      (text) => setState({ text, problem: null }),
      (thrown: unknown) => !abort.signal.aborted && setState({ text: null, problem: problemOf(thrown) }),
    );
    return () => abort.abort();
  }, [place, kind, count]);
  return (
    <section class="card wide" aria-labelledby="log-title">
      <div class="card-head">
        <h2 id="log-title">Log of the serial console</h2>
        <div class="segments" role="radiogroup" aria-label="Part of the log">
          {KINDS.map(({ id, label }) => (
            <label key={id}>
              <input type="radio" name="log-kind" checked={kind === id} onChange={() => setKind(id)} />
              <span>{label}</span>
            </label>
          ))}
        </div>
        <button type="button" class="button small" onClick={() => setCount(count + 1)}>
          Read again
        </button>
      </div>
      {state.problem && <ProblemNote problem={state.problem} again={() => setCount(count + 1)} />}
      {state.text === null && !state.problem && <Spinner label="Reading the log" />}
      {state.text !== null && (state.text ? <LogText text={state.text} /> : <p class="quiet">The guest has written nothing yet.</p>)}
    </section>
  );
}

function LogText({ text }: { text: string }) {
  return (
    <pre class="text-block log" tabIndex={0} aria-label="Log" ref={(element) => void (element && (element.scrollTop = element.scrollHeight))}>
      {plain(text)}
    </pre>
  );
}
