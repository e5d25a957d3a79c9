import { useSignal } from "@preact/signals";
import { post } from "../api/client";
import { several } from "../format/amounts";
import type { Done, TaskRow } from "../generated/answers";
import { Age } from "../parts/age";
import { Icon } from "../parts/icon";
import { Meter } from "../parts/meter";
import { StateMark } from "../parts/statebadge";
import { complain, tell } from "../parts/toasts";
import { useTopic } from "../state/live";
import { machineLink } from "./routes";

const MARK = { running: "going", done: "good", failed: "bad" } as const;

/** Work that takes time, at the foot of each page. */
export function TaskBar() {
  const open = useSignal(false);
  const tasks = [...useTopic("tasks").value.values()].sort(byTurn);
  if (!tasks.length) return null;
  const running = tasks.filter((task) => task.state === "running");
  const failed = tasks.filter((task) => task.state === "failed");
  const first = running[0] ?? tasks[0];
  return (
    <section class="tasks" aria-label="Tasks">
      <button type="button" class="tasks-line" aria-expanded={open.value} aria-controls="tasks" onClick={() => (open.value = !open.value)}>
        {first && <StateMark state={MARK[first.state]} />}
        <span class="title">{first?.title}</span>
        {first?.state === "running" && first.percent >= 0 && <Meter progress label={first.title} part={first.percent / 100} text={`${first.percent}%`} />}
        <span class="end">
          {failed.length > 0 && <span>{failed.length} failed</span>}
          <span>{running.length ? `${running.length} running` : several(tasks.length, "task")}</span>
          <Icon name="chevron" />
        </span>
      </button>
      {open.value && (
        <div class="tasks-list" id="tasks">
          {tasks.map((task) => (
            <Task key={task.id} task={task} />
          ))}
        </div>
      )}
    </section>
  );
}

function Task({ task }: { task: TaskRow }) {
  return (
    <div class="task">
      <StateMark state={MARK[task.state]} />
      <div class="task-title">
        <p>{task.machine ? <a href={machineLink(task.machine)}>{task.title}</a> : task.title}</p>
        <p class="quiet small">{[task.state === "failed" ? "failed" : "", task.text, task.namespace].filter(Boolean).join(" · ")}</p>
      </div>
      {task.state === "running" ? (
        <Meter progress label={`Progress of ${task.title}`} part={task.percent / 100} text={task.percent < 0 ? "" : `${task.percent}%`} />
      ) : (
        <span />
      )}
      <span class="quiet small when">
        <Age time={task.ended || task.started} /> ago
      </span>
      {task.state === "running" ? (
        <button
          type="button"
          class="button small"
          aria-label={`Cancel ${task.title}`}
          aria-disabled={task.keeps ? true : undefined}
          title={task.keeps || undefined}
          onClick={() => void cancel(task)}
        >
          Cancel
        </button>
      ) : (
        <span />
      )}
    </div>
  );
}

async function cancel(task: TaskRow): Promise<void> {
  if (task.keeps) {
    complain(new Error(`${task.title} cannot be cancelled: ${task.keeps}`));
    return;
  }
  try {
    tell((await post<Done>(`tasks/${task.id}/cancel`)).text);
  } catch (thrown) {
    complain(thrown);
  }
}

/** Running work first, then the newest. */
function byTurn(one: TaskRow, other: TaskRow): number {
  const turn = Number(other.state === "running") - Number(one.state === "running");
  return turn || other.started.localeCompare(one.started);
}
