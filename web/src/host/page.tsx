import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get } from "../api/client";
import { type Problem, problemOf } from "../api/problem";
import { bytes, cores, percent, several } from "../format/amounts";
import type { HostCheck, HostInfo, NodeInfo } from "../generated/answers";
import { sentence } from "../format/words";
import { Icon } from "../parts/icon";
import { Meter } from "../parts/meter";
import { ProblemNote } from "../parts/problemnote";
import { Spinner } from "../parts/spinner";
import { StateBadge, StateMark } from "../parts/statebadge";
import { me } from "../state/session";

const REFRESH_MS = 10_000;
// Gravest first.
const ORDER = ["bad", "waits", "unknown", "going", "off", "good"];

/** Nodes with their capacity, and what a check of the host found. */
export function HostPage() {
  const host = useSignal<HostInfo | null>(null);
  const failure = useSignal<Problem | null>(null);
  const load = async (): Promise<void> => {
    try {
      host.value = await get<HostInfo>("host");
      failure.value = null;
    } catch (thrown) {
      failure.value = problemOf(thrown);
    }
  };
  useEffect(() => {
    void load();
    const timer = setInterval(() => {
      if (!document.hidden) void load();
    }, REFRESH_MS);
    return () => clearInterval(timer);
  }, []);
  const own = me()?.own ?? false;
  const checks = [...(host.value?.checks ?? [])].sort((one, other) => ORDER.indexOf(one.state) - ORDER.indexOf(other.state));
  // Nothing on the page takes the focus, and the keyboard has to scroll it.
  return (
    <main class="page" id="main" tabIndex={0}>
      <div class="page-head">
        <h1>{own ? "Host" : "Nodes"}</h1>
      </div>
      {failure.value && <ProblemNote problem={failure.value} again={() => void load()} />}
      {!host.value && !failure.value && <Spinner label="Reading the host" />}
      {host.value && (
        <>
          <div class="cards">
            {host.value.nodes.map((node) => (
              <Node key={node.name} node={node} />
            ))}
          </div>
          {host.value.nodes.length === 0 && (
            <p class="note info">
              <Icon name="info" />
              <span>The server shows this user no nodes. To see them, a ClusterRole has to grant “list” on nodes.</span>
            </p>
          )}
          {checks.length > 0 && (
            <section class="card">
              <h2>Checks of this host</h2>
              <ul class="checks">
                {checks.map((check) => (
                  <Check key={check.name} check={check} />
                ))}
              </ul>
            </section>
          )}
        </>
      )}
    </main>
  );
}

const share = (part: number, whole: number): number => (part < 0 || whole <= 0 ? -1 : part / whole);

function Node({ node }: { node: NodeInfo }) {
  const figures = [
    { label: "CPU", part: share(node.usedCpus, node.cpus), text: `${cores(node.usedCpus)} of ${cores(node.cpus)} cores used, ${cores(node.promisedCpus)} promised` },
    { label: "Memory", part: share(node.usedMemory, node.memory), text: `${bytes(node.usedMemory)} of ${bytes(node.memory)} used, ${bytes(node.promisedMemory)} promised` },
    { label: "Disk", part: share(node.usedDisk, node.disk), text: `${bytes(node.usedDisk)} of ${bytes(node.disk)} used` },
  ];
  const pressure = [
    ["CPU", node.pressure.cpu],
    ["memory", node.pressure.memory],
    ["disk", node.pressure.io],
  ] as const;
  return (
    <section class="card node">
      <div class="node-head">
        <h2>
          <Icon name="host" /> {node.name}
        </h2>
        <StateBadge state={node.state} status={node.status} />
      </div>
      {figures.filter(({ part }) => part >= 0).map(({ label, part, text }) => (
        <div key={label} class="figure">
          <div class="figure-head">
            <span>{label}</span>
            <span class="quiet">{percent(part)}</span>
          </div>
          <div class="meter-wide">
            <Meter label={`${label} of ${node.name}`} part={part} text={text} />
          </div>
        </div>
      ))}
      <dl class="facts small">
        <dt>Pressure</dt>
        <dd>{pressure.map(([what, value]) => `${what} ${value < 0 ? "–" : `${value.toFixed(1)}%`}`).join(" · ")}</dd>
        <dt>Machines</dt>
        <dd>{several(node.machines, "machine")}</dd>
        <dt>System</dt>
        <dd>{[node.os, node.kernel, node.arch].filter(Boolean).join(" · ") || "–"}</dd>
        <dt>Acceleration</dt>
        <dd>{node.accelerator || "–"}</dd>
      </dl>
    </section>
  );
}

function Check({ check }: { check: HostCheck }) {
  return (
    <li class="check-line">
      <StateMark state={check.state} />
      <div>
        <p>
          <strong>{sentence(check.name)}</strong> {check.text.split(". ").map(sentence).join(" ")}
        </p>
        {check.fix && <p class="quiet">{sentence(check.fix)}</p>}
      </div>
    </li>
  );
}
