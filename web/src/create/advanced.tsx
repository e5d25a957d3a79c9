import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import type { PublicKey } from "../generated/answers";
import { Field } from "../parts/field";
import { useTopic } from "../state/live";
import { me } from "../state/session";
import type { PartProps } from "./basics";
import { pastedKeys } from "./choices";
import { errorOf, parseLabels, parsePorts } from "./form";

interface AdvancedProps extends PartProps {
  keys: readonly PublicKey[];
  addKey: (text: string) => void;
}

/** Everything that has a usual value. */
export function Advanced({ form, change, problems, keys, addKey }: AdvancedProps) {
  const number = (text: string): number => (text.trim() === "" ? 0 : Number(text));
  return (
    <div class="sections">
      <Section title="Processor, memory and disk" open={Boolean(errorOf(problems, "cpus", "memory", "disk"))}>
        <div class="pair">
          <Field
            label="CPUs"
            error={errorOf(problems, "cpus")}
            control={(props) => <input {...props} class="input" type="number" min={1} value={form.cpus} onInput={(event) => change({ cpus: number(event.currentTarget.value) })} />}
          />
          <Field
            label="Memory"
            hint="Such as 2Gi"
            error={errorOf(problems, "memory")}
            control={(props) => <input {...props} class="input" value={form.memory} onInput={(event) => change({ memory: event.currentTarget.value.trim() })} />}
          />
          <Field
            label="Disk"
            hint="Empty: as large as the image needs"
            error={errorOf(problems, "disk")}
            control={(props) => <input {...props} class="input" value={form.disk} placeholder="20Gi" onInput={(event) => change({ disk: event.currentTarget.value.trim() })} />}
          />
        </div>
      </Section>
      <Section title="Access" note={form.keys.length ? `${form.keys.length} SSH key${form.keys.length > 1 ? "s" : ""}` : "no SSH key"} open={Boolean(errorOf(problems, "user", "keys", "password"))}>
        <SshKeys form={form} change={change} problems={problems} keys={keys} addKey={addKey} />
        <div class="pair">
          <Field
            label="User"
            error={errorOf(problems, "user")}
            control={(props) => <input {...props} class="input" autocomplete="off" value={form.user} onInput={(event) => change({ user: event.currentTarget.value.trim() })} />}
          />
          <Field
            label="Password"
            hint="Empty: sign in with a key only"
            error={errorOf(problems, "password")}
            control={(props) => (
              <input {...props} class="input" type="password" autocomplete="new-password" value={form.password} onInput={(event) => change({ password: event.currentTarget.value })} />
            )}
          />
        </div>
      </Section>
      <Section title="Network" open={Boolean(errorOf(problems, "network", "ports"))}>
        <Network form={form} change={change} problems={problems} />
      </Section>
      <Section title="Cloud-init" open={Boolean(errorOf(problems, "userData"))}>
        <Field
          label="User data"
          hint="Stands for user, keys and password, which are not sent then"
          error={errorOf(problems, "userData", "user_data")}
          control={(props) => (
            <textarea {...props} class="input" spellcheck={false} placeholder={"#cloud-config\npackages: [nginx]"} value={form.userData} onInput={(event) => change({ userData: event.currentTarget.value })} />
          )}
        />
      </Section>
      <Section title="Placement, labels and number" note={form.namespace} open={Boolean(errorOf(problems, "namespace", "count", "labels"))}>
        <div class="pair">
          <Field
            label="Namespace"
            error={errorOf(problems, "namespace")}
            control={(props) => (
              <select {...props} class="input" value={form.namespace} onChange={(event) => change({ namespace: event.currentTarget.value })}>
                {[...new Set([form.namespace, ...(me()?.namespaces ?? [])])].map((name) => (
                  <option key={name}>{name}</option>
                ))}
              </select>
            )}
          />
          <Field
            label="Number of machines"
            hint={form.count > 1 ? `${form.name}-1 to ${form.name}-${form.count}` : ""}
            error={errorOf(problems, "count")}
            control={(props) => <input {...props} class="input" type="number" min={1} max={100} value={form.count} onInput={(event) => change({ count: number(event.currentTarget.value) })} />}
          />
        </div>
        <Parsed
          label="Labels"
          hint="Such as app=web, tier=front"
          error={errorOf(problems, "labels")}
          initial={Object.entries(form.labels).map(([key, value]) => `${key}=${value}`).join(", ")}
          take={(text) => change({ labels: parseLabels(text) })}
        />
        <label class="check">
          <input type="checkbox" checked={form.start} onChange={(event) => change({ start: event.currentTarget.checked })} />
          <span>Start after creation</span>
        </label>
      </Section>
    </div>
  );
}

function Section({ title, note = "", open, children }: { title: string; note?: string; open: boolean; children: ComponentChildren }) {
  return (
    <details class="section" {...(open ? { open: true } : {})}>
      <summary>
        {title}
        {note && <span class="quiet small">{note}</span>}
      </summary>
      <div class="section-body">{children}</div>
    </details>
  );
}

function SshKeys({ form, change, keys, addKey, problems }: AdvancedProps) {
  const text = useSignal("");
  const wrong = useSignal("");
  const add = (): void => {
    const key = text.value.trim().replace(/\s+/g, " ");
    if (!/^(ssh|ecdsa|sk-)[a-z0-9@.-]* [A-Za-z0-9+/=]{16,}/.test(key)) {
      wrong.value = "This is no public SSH key. It begins with ssh-ed25519 or the like; copy the whole line of a file that ends in .pub.";
      return;
    }
    wrong.value = "";
    text.value = "";
    if (!keys.some((each) => each.text === key)) {
      pastedKeys.value = [...pastedKeys.value, key];
      addKey(key);
    }
    change({ keys: [...new Set([...form.keys, key])] });
  };
  return (
    <fieldset class="plain">
      <legend class="legend">SSH keys</legend>
      {keys.map((key) => (
        <label key={key.text} class="check">
          <input
            type="checkbox"
            checked={form.keys.includes(key.text)}
            onChange={(event) => change({ keys: event.currentTarget.checked ? [...form.keys, key.text] : form.keys.filter((each) => each !== key.text) })}
          />
          <span>
            {key.name} <span class="quiet small">{`${key.type}, ${key.source}`}</span>
          </span>
        </label>
      ))}
      <div class="with-button">
        <Field
          label="Another key"
          hint="This browser remembers it"
          error={wrong.value || errorOf(problems, "keys")}
          control={(props) => (
            <input
              {...props}
              class="input mono"
              placeholder="ssh-ed25519 AAAA…"
              value={text.value}
              onInput={(event) => (text.value = event.currentTarget.value)}
              onKeyDown={(event) => {
                if (event.key !== "Enter") return;
                event.preventDefault();
                add();
              }}
            />
          )}
        />
        <button type="button" class="button" onClick={add} aria-disabled={text.value.trim() ? undefined : true}>
          Add
        </button>
      </div>
    </fieldset>
  );
}

function Network({ form, change, problems }: PartProps) {
  const networks = [...useTopic("networks").value.values()];
  return (
    <>
      <Field
        label="Network"
        error={errorOf(problems, "network")}
        control={(props) => (
          <select {...props} class="input" value={form.network} onChange={(event) => change({ network: event.currentTarget.value })}>
            <option value="">Pod network, behind the address of the host</option>
            {networks.map((row) => {
              const name = row.namespace === form.namespace ? row.name : `${row.namespace}/${row.name}`;
              return (
                <option key={row.id} value={name}>
                  {name}
                </option>
              );
            })}
          </select>
        )}
      />
      <Parsed
        label="Ports of the host"
        hint="HOST:GUEST, such as 8080:80, 5353:53/UDP"
        error={errorOf(problems, "ports")}
        initial={form.ports.map((port) => `${port.host}:${port.guest}/${port.protocol}`).join(", ")}
        take={(text) => change({ ports: parsePorts(text) })}
      />
    </>
  );
}

interface ParsedProps {
  label: string;
  hint: string;
  error: string;
  initial: string;
  /** throws an error for a text that it cannot read */
  take: (text: string) => void;
}

/** A field whose text means a list. What cannot be read stays in the field, with what is wrong. */
function Parsed({ label, hint, error, initial, take }: ParsedProps) {
  const text = useSignal(initial);
  const wrong = useSignal("");
  const read = (value: string): void => {
    text.value = value;
    try {
      take(value);
      wrong.value = "";
    } catch (thrown) {
      wrong.value = thrown instanceof Error ? thrown.message : String(thrown);
    }
  };
  return (
    <Field label={label} hint={hint} error={wrong.value || error} control={(props) => <input {...props} class="input" value={text.value} onInput={(event) => read(event.currentTarget.value)} />} />
  );
}
