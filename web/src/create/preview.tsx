import type { Composed } from "../generated/answers";
import { DIALECTS } from "../machines/columns";
import { Icon } from "../parts/icon";
import { copy } from "../parts/toasts";
import { me } from "../state/session";
import type { PartProps } from "./basics";

/** The manifest of the form in the dialect that a person likes, as it is now. */
export function Preview({ form, change, composed, problems }: PartProps & { composed: Composed | null }) {
  const served = me()?.dialects ?? [];
  return (
    <section class="create-yaml" aria-label="Manifest">
      <div class="create-yaml-head">
        <fieldset class="segments" aria-label="Dialect">
          {Object.entries(DIALECTS).map(([dialect, text]) => (
            <label key={dialect} title={served.includes(dialect) ? undefined : "This server does not serve the dialect; the manifest is for another one."}>
              <input type="radio" name="dialect" checked={form.dialect === dialect} onChange={() => change({ dialect })} />
              <span>{text}</span>
            </label>
          ))}
        </fieldset>
        <button type="button" class="button icon-only small" aria-label="Copy the manifest" title="Copy the manifest" onClick={() => void copy(composed?.yaml ?? "", "Copied the manifest")}>
          <Icon name="copy" />
        </button>
      </div>
      {composed?.losses.map((loss) => (
        <p key={loss} class="note waits small">
          <Icon name="warning" />
          <span>{loss}</span>
        </p>
      ))}
      {composed?.remarks.map((remark) => (
        <p key={remark} class="note info small">
          <Icon name="info" />
          <span>{remark}</span>
        </p>
      ))}
      <pre class={`yaml${problems.length ? " old" : ""}`} tabIndex={0} aria-label="Manifest in YAML">
        {composed?.yaml ?? "# The server writes the manifest…"}
      </pre>
    </section>
  );
}
