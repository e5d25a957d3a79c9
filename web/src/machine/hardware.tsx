import type { ConditionPart, DiskPart, NicPart } from "../generated/answers";
import { bytes, percent } from "../format/amounts";
import { Age } from "../parts/age";
import { CopyText } from "../parts/copytext";
import { Meter } from "../parts/meter";
import { StateBadge } from "../parts/statebadge";

/** Disks with the size that the guest sees beside what they take on the host. */
export function Disks({ disks }: { disks: readonly DiskPart[] }) {
  return (
    <section class="card wide" aria-labelledby="disks-title">
      <h2 id="disks-title">Disks</h2>
      {disks.length === 0 ? (
        <p class="quiet">The machine has no disks.</p>
      ) : (
        <div class="table-scroll" tabIndex={0} role="region" aria-label="Table of the disks">
          <table class="plain">
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Device</th>
                <th scope="col" class="number">
                  Size in the guest
                </th>
                <th scope="col">Taken on the host</th>
                <th scope="col">Source</th>
                <th scope="col">Volume</th>
                <th scope="col">State</th>
              </tr>
            </thead>
            <tbody>
              {disks.map((disk) => (
                <tr key={disk.name}>
                  <th scope="row">{disk.name}</th>
                  <td>{[disk.type, disk.bus].filter(Boolean).join(" · ")}</td>
                  <td class="number">{bytes(disk.size)}</td>
                  <td>
                    <Taken disk={disk} />
                  </td>
                  <td class="break">{disk.source || "–"}</td>
                  <td>
                    {disk.claim || "–"}
                    {disk.storageClass && <span class="quiet"> · {disk.storageClass}</span>}
                  </td>
                  <td>{disk.state || "–"}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function Taken({ disk }: { disk: DiskPart }) {
  if (disk.used < 0) return <span class="quiet">not known</span>;
  if (disk.size <= 0) return <>{bytes(disk.used)}</>;
  const part = disk.used / disk.size;
  return <Meter label={`Part of ${disk.name} taken on the host`} part={part} text={`${bytes(disk.used)} · ${percent(part)}`} />;
}

export function Interfaces({ nics }: { nics: readonly NicPart[] }) {
  return (
    <section class="card wide" aria-labelledby="nics-title">
      <h2 id="nics-title">Network interfaces</h2>
      {nics.length === 0 ? (
        <p class="quiet">The machine has no network interfaces.</p>
      ) : (
        <div class="table-scroll" tabIndex={0} role="region" aria-label="Table of the network interfaces">
          <table class="plain">
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Network</th>
                <th scope="col">Binding</th>
                <th scope="col">MAC address</th>
                <th scope="col">Addresses</th>
                <th scope="col">State</th>
              </tr>
            </thead>
            <tbody>
              {nics.map((nic) => (
                <tr key={nic.name}>
                  <th scope="row">{nic.name}</th>
                  <td>{nic.network || "–"}</td>
                  <td>{[nic.binding, nic.model].filter(Boolean).join(" · ") || "–"}</td>
                  <td>{nic.mac ? <CopyText text={nic.mac} /> : "–"}</td>
                  <td>{nic.addresses.length > 0 ? nic.addresses.map((address) => <CopyText key={address} text={address} />) : "–"}</td>
                  <td>{nic.state || "–"}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

export function Conditions({ conditions }: { conditions: readonly ConditionPart[] }) {
  return (
    <section class="card wide" aria-labelledby="conditions-title">
      <h2 id="conditions-title">Conditions</h2>
      {conditions.length === 0 ? (
        <p class="quiet">No controller has reported a condition yet.</p>
      ) : (
        <ul class="conditions">
          {conditions.map((each) => (
            <li key={each.type}>
              <span class="condition-name">
                <StateBadge state={each.good ? "good" : each.status === "Unknown" ? "unknown" : "waits"} status={each.type} />
                <span class="quiet">{each.status}</span>
              </span>
              <span class="condition-text">
                {each.reason && <b>{each.reason}</b>}
                {each.reason && each.message && ": "}
                {each.message}
              </span>
              <span class="quiet condition-age">
                <Age time={each.changed} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
