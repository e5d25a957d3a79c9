import { useSignal } from "@preact/signals";
import { openCreate } from "../app/keys";
import { createFirst } from "../create/first";
import { Icon } from "../parts/icon";
import { complain, tell } from "../parts/toasts";
import { missing } from "../state/session";

/** The page of somebody who has no machine yet. */
export function Empty() {
  const busy = useSignal(false);
  const begin = async (): Promise<void> => {
    busy.value = true;
    try {
      tell(`Created ${await createFirst()}`);
    } catch (thrown) {
      complain(thrown);
    } finally {
      busy.value = false;
    }
  };
  // A cluster without KubeVirt, or a user who may not see machines.
  const gap = missing("list");
  if (gap) {
    return (
      <div class="empty">
        <Icon name="machine" size={44} />
        <h2>No machines to see here</h2>
        <p>{gap}</p>
      </div>
    );
  }
  return (
    <div class="empty">
      <Icon name="machine" size={44} />
      <h2>No machines yet</h2>
      <p>One click makes a small machine from an image that this host has or can fetch. You can change all of it later, or choose for yourself now.</p>
      <div class="buttons">
        <button type="button" class="button primary" disabled={busy.value} onClick={() => void begin()}>
          {busy.value ? "Creating…" : "Create a first machine"}
        </button>
        <button type="button" class="button" onClick={() => openCreate()}>
          Choose an image
        </button>
      </div>
    </div>
  );
}
