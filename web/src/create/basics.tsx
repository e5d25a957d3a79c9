import type { FormProblem, MachineForm } from "../generated/answers";
import { Field } from "../parts/field";
import { SIZES, errorOf } from "./form";

export interface PartProps {
  form: MachineForm;
  change: (part: Partial<MachineForm>) => void;
  problems: readonly FormProblem[];
}

/** Name and size. */
export function Basics({ form, change, problems }: PartProps) {
  return (
    <>
      <Field
        label="Name"
        error={errorOf(problems, "name")}
        control={(props) => <input {...props} class="input" value={form.name} autocomplete="off" spellcheck={false} onInput={(event) => change({ name: event.currentTarget.value })} />}
      />
      <fieldset class="tiles sizes">
        <legend class="legend">Size</legend>
        {SIZES.map((size) => (
          <label key={size.id} class="tile">
            <input
              type="radio"
              name="size"
              checked={size.cpus === form.cpus && size.memory === form.memory}
              onChange={() => change({ cpus: size.cpus, memory: size.memory })}
            />
            <span class="tile-text">
              <span class="tile-name">{size.text}</span>
              <span class="quiet small">
                {size.cpus} CPU · {size.memory.replace("Gi", " GiB")}
              </span>
            </span>
          </label>
        ))}
      </fieldset>
    </>
  );
}
