import type { PendingPart } from "../generated/answers";
import { EffectBadge } from "./effects";

/** Changes that the running guest does not have yet. */
export function Pending({ pending }: { pending: readonly PendingPart[] }) {
  if (pending.length === 0) return null;
  return (
    <section class="card pending" aria-labelledby="pending-title">
      <h2 id="pending-title">Changes that wait</h2>
      <div class="table-scroll" tabIndex={0} role="region" aria-label="Changes that wait">
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">Field</th>
              <th scope="col">The guest has</th>
              <th scope="col">Wanted</th>
              <th scope="col">Needs</th>
              <th scope="col">Reason</th>
            </tr>
          </thead>
          <tbody>
            {pending.map((each) => (
              <tr key={each.field}>
                <th scope="row" class="mono">
                  {each.field}
                </th>
                <td class="mono">{each.from || "–"}</td>
                <td class="mono">{each.to || "–"}</td>
                <td>
                  <EffectBadge effect={each.effect} />
                </td>
                <td>{each.why}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
