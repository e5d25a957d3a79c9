import type { Cause, MachineRow, State, Why } from "../generated/answers";
import { Age } from "../parts/age";
import { Command } from "../parts/copytext";
import { ProblemNote } from "../parts/problemnote";
import { StateMark } from "../parts/statebadge";
import { useReading } from "./detail";

const STATES: Readonly<Record<Why["state"], State>> = { good: "good", notice: "waits", waits: "going", fails: "bad", unknown: "unknown" };

/** Why the machine is as it is: the verdict, and for each cause its evidence and its cure. */
export function WhyPanel({ place, row }: { place: string; row: MachineRow }) {
  const { value, problem, reload } = useReading<Why>(`machines/${place}/why`, `${row.status} ${row.reason} ${row.state}`);
  if (problem && !value) return <ProblemNote problem={problem} again={reload} />;
  if (!value) return null;
  const state = STATES[value.state];
  return (
    <section class={`why ${state}`} aria-labelledby="why-title">
      <h2 id="why-title" class="why-verdict">
        <StateMark state={state} />
        <span>
          {row.name} {value.word}
        </span>
      </h2>
      {value.causes.map((cause) => (
        <CauseCard key={cause.rule + cause.object + cause.cause} cause={cause} />
      ))}
      {value.hints.length > 0 && (
        <details class="why-hints">
          <summary>{value.hints.length === 1 ? "One more observation" : `${value.hints.length} more observations`}</summary>
          {value.hints.map((cause) => (
            <CauseCard key={cause.rule + cause.object + cause.cause} cause={cause} />
          ))}
        </details>
      )}
      {value.gaps.length > 0 && <p class="quiet small">Not checked: {value.gaps.join("; ")}.</p>}
    </section>
  );
}

function CauseCard({ cause }: { cause: Cause }) {
  return (
    <article class="cause">
      <h3>{cause.title}</h3>
      {cause.cause !== cause.title && <p>{cause.cause}</p>}
      {cause.evidence.length > 0 && (
        <dl class="evidence">
          {cause.evidence.map((each) => (
            <div key={each.where + each.text}>
              <dt class="mono">{each.where}</dt>
              <dd>
                <span class="evidence-text">{each.text}</span>
                {each.since && (
                  <span class="quiet">
                    {" "}
                    · <Age time={each.since} /> ago
                  </span>
                )}
              </dd>
            </div>
          ))}
        </dl>
      )}
      {cause.fix && (
        <p class="cure">
          <b>Fix</b> {cause.fix}
        </p>
      )}
      {cause.commands.map((command) => (
        <Command key={command} text={command} />
      ))}
      <p class="quiet small cause-rule">
        {cause.object}
        {cause.rule && ` · rule ${cause.rule}`}
      </p>
    </article>
  );
}
