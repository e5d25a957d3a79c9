import type { State } from "../generated/answers";

interface StateBadgeProps {
  state: State;
  status: string;
  reason?: string;
}

/** A state in a colour, a shape and a word: nobody depends on the colour. The word may go on after a name (“is ready”). */
export function StateBadge({ state, status, reason = "" }: StateBadgeProps) {
  return (
    <span class={`state ${state}`} title={reason || undefined}>
      {(status || state).replace(/^is /, "")}
    </span>
  );
}

/** The shape alone, beside a text that says the same. */
export function StateMark({ state }: { state: State }) {
  return <span class={`mark ${state}`} aria-hidden="true" />;
}
