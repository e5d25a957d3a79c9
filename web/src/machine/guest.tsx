import type { GuestPart } from "../generated/answers";
import { bytes, percent } from "../format/amounts";
import { Age } from "../parts/age";
import { Meter } from "../parts/meter";
import { Fact, None } from "./overview";

/** The report of the guest agent. Its texts come from the guest, and are text here. */
export function Guest({ guest }: { guest: GuestPart }) {
  return (
    <section class="card" aria-labelledby="guest-title">
      <h2 id="guest-title">Guest</h2>
      {guest.agent ? (
        <>
          <dl class="facts">
            <Fact name="System">{guest.os || <None />}</Fact>
            <Fact name="Kernel">{guest.kernel || <None />}</Fact>
            <Fact name="Host name">{guest.hostname || <None />}</Fact>
            <Fact name="Time zone">{guest.timezone || <None />}</Fact>
            <Fact name="Users">
              {guest.users.length > 0 ? (
                <ul class="bare">
                  {guest.users.map((user) => (
                    <li key={user.name + user.since}>
                      {user.name}
                      {user.since && (
                        <span class="quiet">
                          {" "}
                          for <Age time={user.since} />
                        </span>
                      )}
                    </li>
                  ))}
                </ul>
              ) : (
                <span class="quiet">Nobody is logged in.</span>
              )}
            </Fact>
          </dl>
          {guest.filesystems.length > 0 && (
            <>
              <h3>File systems</h3>
              <ul class="filesystems">
                {guest.filesystems.map((each) => (
                  <li key={each.mount}>
                    <span class="mono break">{each.mount}</span>
                    <span class="quiet">{each.type}</span>
                    <Meter label={`Used of ${each.mount}`} part={each.size > 0 ? each.used / each.size : -1} text={usedText(each.used, each.size)} />
                  </li>
                ))}
              </ul>
            </>
          )}
        </>
      ) : (
        <p class="quiet">
          No guest agent answers. Install <span class="mono">qemu-guest-agent</span> in the guest to see its users, file systems and addresses here.
        </p>
      )}
    </section>
  );
}

function usedText(used: number, size: number): string {
  return size > 0 && used >= 0 ? `${bytes(used)} of ${bytes(size)} · ${percent(used / size)}` : bytes(size);
}
