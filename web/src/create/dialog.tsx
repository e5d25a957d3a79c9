import { useSignal } from "@preact/signals";
import { useEffect, useId, useMemo } from "preact/hooks";
import { get, post } from "../api/client";
import { type Problem, problemOf } from "../api/problem";
import { go, link, machineLink } from "../app/routes";
import { several } from "../format/amounts";
import type { Catalog, CatalogImage, Composed, FormProblem, Keys, MachineForm, PublicKey } from "../generated/answers";
import { Dialog } from "../parts/dialog";
import { ProblemNote } from "../parts/problemnote";
import { Spinner } from "../parts/spinner";
import { tell } from "../parts/toasts";
import { askRights, lackOf } from "../state/rights";
import { me } from "../state/session";
import { Advanced } from "./advanced";
import { Basics } from "./basics";
import { chosenKeys, pastedKeys, usualDialect } from "./choices";
import { create, formOf, namesIn } from "./first";
import { freeName, problemsOf, sent } from "./form";
import { Images } from "./images";
import { Preview } from "./preview";

const PAUSE_MS = 250;

/** Make a machine: image, name, size, Create. */
export function CreateDialog({ close, image }: { close: () => void; image: string }) {
  const images = useSignal<CatalogImage[] | null>(null);
  const keys = useSignal<PublicKey[]>([]);
  const failure = useSignal<Problem | null>(null);
  const form = useSignal<MachineForm | null>(null);
  const load = async (): Promise<void> => {
    failure.value = null;
    try {
      const [catalog, known] = await Promise.all([get<Catalog>("catalog"), get<Keys>("keys")]);
      keys.value = [...known.keys, ...pastedKeys.value.map(keyOf)];
      images.value = catalog.images;
      const first = catalog.images.find((each) => each.id === image) ?? null;
      if (first) form.value = begin(first, keys.value);
    } catch (thrown) {
      failure.value = problemOf(thrown);
    }
  };
  useEffect(() => void load(), []);
  if (failure.value || !images.value) {
    return (
      <Dialog title="New machine" close={close} wide>
        {failure.value ? <ProblemNote problem={failure.value} again={() => void load()} /> : <Spinner label="Reading the images" />}
      </Dialog>
    );
  }
  return <Form close={close} images={images.value} keys={keys.value} form={form} addKey={(text) => (keys.value = [...keys.value, keyOf(text)])} />;
}

function keyOf(text: string): PublicKey {
  const [type = "", , name = "pasted key"] = text.split(/\s+/);
  return { name, type, text, source: "this browser" };
}

function begin(image: CatalogImage, keys: readonly PublicKey[]): MachineForm {
  const dialects = me()?.dialects ?? [];
  const dialect = dialects.includes(usualDialect.value) ? usualDialect.value : (dialects[0] ?? "kubevirt");
  const known = keys.map((key) => key.text);
  const chosen = chosenKeys.value?.filter((text) => known.includes(text)) ?? known;
  return formOf(image, chosen, dialect);
}

interface FormProps {
  close: () => void;
  images: readonly CatalogImage[];
  keys: readonly PublicKey[];
  form: { value: MachineForm | null };
  addKey: (text: string) => void;
}

function Form({ close, images, keys, form, addKey }: FormProps) {
  const composed = useSignal<Composed | null>(null);
  const refused = useSignal<Problem | null>(null);
  const busy = useSignal(false);
  const named = useSignal(false);
  const id = useId();
  const { value } = form;
  const image = images.find((each) => each.id === value?.image);
  const own = useMemo(() => (value ? problemsOf(value, image) : []), [value, image]);
  const problems: readonly FormProblem[] = own.length ? own : (composed.value?.errors ?? []);

  useEffect(() => {
    if (!value) return;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      post<Composed>("compose", sent(value), abort.signal).then(
        (answer) => {
          composed.value = answer;
          refused.value = null;
        },
        (thrown: unknown) => {
          if (!abort.signal.aborted) refused.value = problemOf(thrown);
        },
      );
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [value]);

  const change = (part: Partial<MachineForm>): void => {
    if (!form.value) return;
    if (part.name !== undefined) named.value = true;
    if (part.keys) chosenKeys.value = part.keys;
    if (part.dialect) usualDialect.value = part.dialect;
    // A name that nobody chose stays free in another namespace.
    const moved = part.namespace !== undefined && !named.value ? { name: freeName(image?.os ?? form.value.name, namesIn(part.namespace)) } : {};
    form.value = { ...form.value, ...part, ...moved };
  };
  const choose = (next: CatalogImage): void => {
    const fresh = begin(next, keys);
    form.value = form.value ? { ...form.value, image: next.id, cpus: fresh.cpus, memory: fresh.memory, user: fresh.user, ...(named.value ? {} : { name: fresh.name }) } : fresh;
  };
  // Machines of Kubermatic are KubeVirt's.
  const kind = value ? `${["kubevirt", "kubermatic"].includes(value.dialect) ? "vm" : value.dialect}/${value.namespace}` : "";
  useEffect(() => {
    if (kind) askRights(kind);
  }, [kind]);
  const lacking = kind && lackOf(kind, "create");
  const ready = value !== null && !problems.length && composed.value !== null && !lacking;
  const submit = async (): Promise<void> => {
    if (!value || busy.value || !ready) return;
    busy.value = true;
    refused.value = null;
    try {
      // What is written is what the form says now, and not what it said before the last key.
      const final = await post<Composed>("compose", sent(value));
      composed.value = final;
      if (final.errors.length) return;
      await create(final.yaml);
      close();
      const [place] = final.machines;
      tell(`Created ${final.machines.length > 1 ? several(final.machines.length, "machine") : value.name}`);
      go(final.machines.length === 1 && place ? machineLink(place) : link("machines"));
    } catch (thrown) {
      refused.value = problemOf(thrown);
    } finally {
      busy.value = false;
    }
  };
  return (
    <Dialog
      title="New machine"
      close={close}
      wide
      footer={
        <>
          <span class="grow quiet small" role="status">
            {value ? lacking || (problems[0]?.message ?? (composed.value || refused.value ? "" : "The server checks the form…")) : "Choose an image to begin."}
          </span>
          <button type="button" class="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" form={id} class="button primary" aria-disabled={ready && !busy.value ? undefined : true}>
            {busy.value ? "Creating…" : value && value.count > 1 ? `Create ${value.count} machines` : "Create"}
          </button>
        </>
      }
    >
      <div class={`create${value ? " begun" : ""}`}>
        <form
          id={id}
          class="create-form"
          noValidate
          onSubmit={(event) => {
            event.preventDefault();
            void submit();
          }}
        >
          <Images images={images} chosen={value?.image ?? ""} choose={choose} />
          {value && (
            <>
              <Basics form={value} change={change} problems={problems} />
              <Advanced form={value} change={change} problems={problems} keys={keys} addKey={addKey} />
            </>
          )}
          {refused.value && <ProblemNote problem={refused.value} />}
        </form>
        {value && <Preview form={value} change={change} composed={composed.value} problems={problems} />}
      </div>
    </Dialog>
  );
}
