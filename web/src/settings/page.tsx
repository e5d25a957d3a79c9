import type { Signal } from "@preact/signals";
import { openKeyHelp, singleKeys } from "../app/keys";
import { pastedKeys, usualDialect } from "../create/choices";
import { DIALECTS } from "../machines/columns";
import { savedFilters } from "../machines/filters";
import { Field } from "../parts/field";
import { Icon } from "../parts/icon";
import { type Theme, dense, namespace, theme } from "../state/preferences";
import { complain } from "../parts/toasts";
import { me, signOut } from "../state/session";

const THEMES: readonly [Theme, string][] = [
  ["system", "As the system"],
  ["light", "Light"],
  ["dark", "Dark"],
];

/** What this browser remembers, and what the server is. */
export function SettingsPage() {
  const user = me();
  return (
    <main class="page" id="main" tabIndex={-1}>
      <div class="page-head">
        <h1>Settings</h1>
      </div>
      <div class="cards">
        <section class="card settings">
          <h2>Appearance</h2>
          <fieldset>
            <legend class="legend">Colours</legend>
            <div class="segments">
              {THEMES.map(([value, text]) => (
                <label key={value}>
                  <input type="radio" name="theme" checked={theme.value === value} onChange={() => (theme.value = value)} />
                  <span>{text}</span>
                </label>
              ))}
            </div>
          </fieldset>
          <Switch on={dense} text="Compact tables" />
          <Switch on={singleKeys} text="Shortcuts with a single key" />
          <button type="button" class="button small" onClick={openKeyHelp}>
            Show the shortcuts
          </button>
        </section>
        <section class="card settings">
          <h2>New machines</h2>
          <Field
            label="Dialect"
            hint="The language of new manifests"
            control={(props) => (
              <select {...props} class="input" value={usualDialect.value} onChange={(event) => (usualDialect.value = event.currentTarget.value)}>
                <option value="">The server’s first</option>
                {(user?.dialects ?? []).map((dialect) => (
                  <option key={dialect} value={dialect}>
                    {DIALECTS[dialect] ?? dialect}
                  </option>
                ))}
              </select>
            )}
          />
          <Field
            label="Namespace"
            hint="For lists and new machines"
            control={(props) => (
              <select {...props} class="input" value={namespace.value} onChange={(event) => (namespace.value = event.currentTarget.value)}>
                <option value="">All namespaces</option>
                {(user?.namespaces ?? []).map((name) => (
                  <option key={name}>{name}</option>
                ))}
              </select>
            )}
          />
        </section>
        <section class="card settings">
          <h2>This browser remembers</h2>
          <Remembered title="SSH keys" texts={pastedKeys.value} forget={(text) => (pastedKeys.value = pastedKeys.value.filter((each) => each !== text))} />
          <Remembered
            title="Filters"
            texts={savedFilters.value.map((each) => each.query)}
            forget={(text) => (savedFilters.value = savedFilters.value.filter((each) => each.query !== text))}
          />
        </section>
        <section class="card settings">
          <h2>Server</h2>
          <dl class="facts">
            <dt>Address</dt>
            <dd class="mono">{user?.server}</dd>
            <dt>Version</dt>
            <dd>{user?.version}</dd>
            <dt>Kind</dt>
            <dd>{user?.own ? "Paddock’s own server" : "a Kubernetes cluster"}</dd>
            <dt>User</dt>
            <dd>{user?.user || "that of the kubeconfig"}</dd>
            <dt>Dialects</dt>
            <dd>{(user?.dialects ?? []).map((each) => DIALECTS[each] ?? each).join(", ")}</dd>
          </dl>
          {(user?.missing ?? []).map((each) => (
            <p key={each.what} class="note info">
              <Icon name="info" />
              <span>
                <strong>{each.what}</strong>: {each.why}
              </span>
            </p>
          ))}
          <button type="button" class="button small" onClick={() => void signOut().catch(complain)}>
            Sign out
          </button>
          <p class="small">
            <a href="licenses.txt">Licenses of the packages in this page</a>
          </p>
        </section>
      </div>
    </main>
  );
}

function Switch({ on, text }: { on: Signal<boolean>; text: string }) {
  return (
    <label class="check">
      <input type="checkbox" checked={on.value} onChange={(event) => (on.value = event.currentTarget.checked)} />
      <span>{text}</span>
    </label>
  );
}

function Remembered({ title, texts, forget }: { title: string; texts: readonly string[]; forget: (text: string) => void }) {
  return (
    <div>
      <h3>{title}</h3>
      {texts.length ? (
        <ul class="remembered">
          {texts.map((text) => (
            <li key={text}>
              <span class="mono cell" title={text}>
                {text}
              </span>
              <button type="button" class="button icon-only small" aria-label={`Forget ${text}`} onClick={() => forget(text)}>
                <Icon name="close" />
              </button>
            </li>
          ))}
        </ul>
      ) : (
        <p class="quiet">None</p>
      )}
    </div>
  );
}
