import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

interface FieldProps {
  label: string;
  hint?: string;
  /** what is wrong with the value, and what to do; empty if nothing */
  error?: string;
  /** draws the control; `props` connect it with label, hint and error */
  control: (props: { id: string; "aria-describedby"?: string; "aria-invalid"?: boolean }) => ComponentChildren;
}

/** A control with its label, a hint, and what is wrong with it. */
export function Field({ label, hint = "", error = "", control }: FieldProps) {
  const id = useId();
  const about = error ? `${id}-error` : hint ? `${id}-hint` : "";
  return (
    <div class={`field${error ? " wrong" : ""}`}>
      <label for={id}>{label}</label>
      {control({ id, ...(about ? { "aria-describedby": about } : {}), ...(error ? { "aria-invalid": true } : {}) })}
      {error ? (
        <p class="field-error" id={`${id}-error`}>
          {error}
        </p>
      ) : (
        hint && (
          <p class="field-hint" id={`${id}-hint`}>
            {hint}
          </p>
        )
      )}
    </div>
  );
}
