import type { State } from "../generated/answers";

/** A state in a colour, a shape and a word: nobody depends on the colour. The word may go on after a name (“is ready”). */
export function StateBadge({ state, status, reason = "" }: { state: State; status: string; reason?: string }) {
  return (
    <span class={`state ${state}`} title={reason || undefined}>
      <StateMark state={state} />
      <span class="state-word">{(status || state).replace(/^is /, "")}</span>
    </span>
  );
}

const MARKS: Record<State, string> = {
  good: "M8 3a5 5 0 1 1 0 10A5 5 0 0 1 8 3z",
  off: "M8 3.8a4.2 4.2 0 1 1 0 8.4 4.2 4.2 0 0 1 0-8.4zm0 1.7a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5z",
  waits: "M8 2.5 13.5 8 8 13.5 2.5 8z",
  bad: "M8 2.2 14.3 13.2H1.7z",
  going: "M8 3a5 5 0 0 1 5 5h-2a3 3 0 0 0-3-3zM3 8h2a3 3 0 0 0 3 3v2a5 5 0 0 1-5-5z",
  unknown: "M3.5 7h9v2h-9z",
};

export function StateMark({ state }: { state: State }) {
  return (
    <svg class={`mark ${state}`} width="16" height="16" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={MARKS[state]} />
    </svg>
  );
}
