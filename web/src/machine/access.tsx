import { useEffect, useState } from "preact/hooks";
import { address } from "../api/client";
import { machineLink } from "../app/routes";
import type { Access, MachineRow } from "../generated/answers";
import { Command } from "../parts/copytext";

/** Commands that lead into the guest. */
export function AccessCard({ access }: { access: Access }) {
  const commands = [
    { label: "SSH", text: access.ssh },
    { label: "Serial console", text: access.console },
    { label: "Screen", text: access.vnc },
    { label: "Command in the guest", text: access.exec },
  ].filter((each) => each.text);
  return (
    <section class="card" aria-labelledby="access-title">
      <h2 id="access-title">Ways in</h2>
      {commands.map(({ label, text }) => (
        <div key={label} class="way-in">
          <span class="quiet small">{label}</span>
          <Command text={text} />
        </div>
      ))}
      {access.note && <p class="quiet small">{access.note}</p>}
    </section>
  );
}

const EVERY_MS = 10_000;

/** The guest's screen as it is now, small; a click opens the screen itself. */
export function Screenshot({ row }: { row: MachineRow }) {
  const [count, setCount] = useState(0);
  const [state, setState] = useState<"loading" | "here" | "none">("loading");
  useEffect(() => {
    setState("loading");
    const timer = setInterval(() => document.visibilityState === "visible" && setCount((before) => before + 1), EVERY_MS);
    return () => clearInterval(timer);
  }, [row.id, row.status]);
  return (
    <a class="screenshot" href={machineLink(row.id, "screen")} data-state={state} aria-label={`Open the screen of ${row.name}`}>
      {row.state !== "off" && (
        <img
          src={address(`machines/${row.id}/screenshot`, { at: `${row.status} ${count}` })}
          alt={state === "here" ? `The screen of ${row.name} now` : ""}
          onLoad={() => setState("here")}
          onError={() => setState("none")}
        />
      )}
      {(state === "none" || row.state === "off") && <span class="quiet">No picture of the screen now</span>}
    </a>
  );
}
