import type { Problem } from "../api/problem";
import { Icon } from "./icon";

/** A failure: what, why, and what to do. */
export function ProblemNote({ problem, again }: { problem: Problem; again?: () => void }) {
  return (
    <div class="note bad" role="alert">
      <Icon name="warning" />
      <div>
        <p class="note-title">{problem.message}</p>
        {problem.why && <p>{problem.why}</p>}
        {problem.fix && <p class="note-fix">{problem.fix}</p>}
        {again && (
          <button type="button" class="button small" onClick={again}>
            Try again
          </button>
        )}
      </div>
    </div>
  );
}
