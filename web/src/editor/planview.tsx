import type { Finding, Plan } from "../generated/answers";
import { EffectBadge } from "../machine/effects";
import { Icon } from "../parts/icon";
import { ordered } from "./edit";

interface PlanProps {
  plan: Plan | null;
  /** The plan of the text in the editor is under way. */
  busy: boolean;
  dirty: boolean;
  goTo: (line: number, column: number) => void;
}

const NAMES: Readonly<Record<Finding["severity"], string>> = { error: "Error", warning: "Warning", note: "Note" };

/** What the text would do if it were saved now: findings at their lines, and the effect of every changed field. */
export function PlanView({ plan, busy, dirty, goTo }: PlanProps) {
  const findings = plan ? ordered(plan.findings) : [];
  return (
    <section class="plan" aria-labelledby="plan-title" aria-busy={busy}>
      <h3 id="plan-title">Plan of this edit</h3>
      <p class="plan-summary" role="status">
        {busy ? "Planning…" : planText(plan, dirty)}
      </p>
      {findings.length > 0 && (
        <ul class="findings">
          {findings.map((finding) => (
            <li key={`${finding.line} ${finding.column} ${finding.rule} ${finding.message}`} class={`finding ${finding.severity}`}>
              <button type="button" onClick={() => goTo(finding.line, finding.column)}>
                <Icon name={finding.severity === "note" ? "info" : "warning"} />
                <span>
                  <b>
                    {NAMES[finding.severity]}, line {finding.line}
                  </b>
                  {finding.field && <span class="mono finding-field">{finding.field}</span>}
                  <span>{finding.message}</span>
                </span>
              </button>
            </li>
          ))}
        </ul>
      )}
      {plan && dirty && plan.changes.length > 0 && (
        <ul class="changes">
          {plan.changes.map((change) => (
            <li key={`${change.field} ${change.change}`}>
              <span class="change-head">
                {change.line > 0 ? (
                  <button type="button" class="link mono" onClick={() => goTo(change.line, 1)}>
                    {change.field}
                  </button>
                ) : (
                  <span class="mono">{change.field}</span>
                )}
                <EffectBadge effect={change.effect} />
              </span>
              <span class="mono change-text">{change.change}</span>
              {change.why && <span class="quiet small">{change.why}</span>}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function planText(plan: Plan | null, dirty: boolean): string {
  if (!dirty) return plan?.findings.length ? "The stored text has findings." : "Nothing has changed.";
  return plan?.summary || "The edit has no effect.";
}
