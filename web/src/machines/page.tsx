import { machineLink } from "../app/routes";
import { StateBadge } from "../parts/statebadge";
import { useTopic } from "../state/live";

export function MachineList() {
  const rows = useTopic("machines");
  return (
    <main class="page" id="main" tabIndex={-1}>
      <h1>Machines</h1>
      <ul>
        {[...rows.value.values()].slice(0, 50).map((row) => (
          <li key={row.id}>
            <a href={machineLink(row.id)}>{row.name}</a> <StateBadge state={row.state} status={row.status} reason={row.reason} />
          </li>
        ))}
      </ul>
    </main>
  );
}
