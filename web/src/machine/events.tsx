import type { Events, History, MachineRow } from "../generated/answers";
import { several } from "../format/amounts";
import { Age } from "../parts/age";
import { ProblemNote } from "../parts/problemnote";
import { Spinner } from "../parts/spinner";
import { StateMark } from "../parts/statebadge";
import { useReading } from "./detail";

interface PastProps {
  place: string;
  row: MachineRow;
}

const SHORT_MS = 8000;

/** What happened to the machine and its objects. */
export function EventList({ place, row }: PastProps) {
  const { value, problem, reload } = useReading<Events>(`machines/${place}/events`, row, { everyMs: SHORT_MS });
  return (
    <section class="card wide" aria-labelledby="events-title">
      <h2 id="events-title">Events</h2>
      {problem && <ProblemNote problem={problem} again={reload} />}
      {!value && !problem && <Spinner label="Reading events" />}
      {value?.events.length === 0 && <p class="quiet">The server has no events of this machine. It keeps events for an hour, unless it was configured otherwise.</p>}
      {value && value.events.length > 0 && (
        <ol class="timeline">
          {value.events.map((event) => (
            <li key={event.id}>
              <StateMark state={event.type === "Warning" ? "waits" : "good"} />
              <div>
                <p>
                  <b>{event.reason}</b>
                  {event.type === "Warning" && <span class="for-readers"> (warning)</span>} <span class="quiet">{event.object}</span>
                </p>
                <p>{event.message}</p>
                <p class="quiet small">
                  <Age time={event.time} /> ago
                  {event.count > 1 && ` · ${several(event.count, "time")}`}
                  {event.source && ` · ${event.source}`}
                </p>
              </div>
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}

/** Who changed which fields, and when. */
export function HistoryList({ place, row }: PastProps) {
  const { value, problem, reload } = useReading<History>(`machines/${place}/history`, row);
  return (
    <section class="card wide" aria-labelledby="history-title">
      <h2 id="history-title">Who changed what</h2>
      {problem && <ProblemNote problem={problem} again={reload} />}
      {!value && !problem && <Spinner label="Reading the history" />}
      {value?.history.length === 0 && <p class="quiet">The objects of this machine have no record of their writers.</p>}
      {value && value.history.length > 0 && (
        <ol class="timeline">
          {value.history.map((part) => (
            <li key={part.time + part.manager + part.operation + part.object}>
              <span class="timeline-dot" aria-hidden="true" />
              <div>
                <p>
                  <b>{part.manager}</b> <span class="quiet">{part.operation}</span> {part.object}
                </p>
                <p class="tags wrap">
                  {part.fields.map((field) => (
                    <span key={field} class="tag mono">
                      {field}
                    </span>
                  ))}
                </p>
                <p class="quiet small">
                  <Age time={part.time} /> ago
                </p>
              </div>
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}
