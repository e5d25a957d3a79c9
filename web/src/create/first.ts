import { get, post } from "../api/client";
import { Problem } from "../api/problem";
import type { Applied, Catalog, CatalogImage, Composed, Keys, MachineForm } from "../generated/answers";
import { rowsOf } from "../state/live";
import { namespace } from "../state/preferences";
import { me } from "../state/session";
import { freeName, sizeFor } from "./form";

/** The form of a machine of an image, with what is usual. */
export function formOf(image: CatalogImage, keys: string[], dialect: string): MachineForm {
  const size = sizeFor(image);
  const place = namespace.value || me()?.namespace || "default";
  return {
    image: image.id,
    name: freeName(image.os || image.id, namesIn(place)),
    namespace: place,
    dialect,
    count: 1,
    cpus: size.cpus,
    memory: size.memory,
    disk: "",
    user: image.user,
    keys,
    password: "",
    userData: "",
    network: "",
    ports: [],
    labels: {},
    start: true,
  };
}

/** The names that machines of a namespace have. */
export function namesIn(place: string): Set<string> {
  return new Set([...rowsOf("machines").value.values()].filter((row) => row.namespace === place).map((row) => row.name));
}

/** Apply manifests after a rehearsal, so that either all of them are written or none because one is refused. */
export async function create(yaml: string): Promise<Applied> {
  await post<Applied>("apply", { yaml, dryRun: true });
  return post<Applied>("apply", { yaml, dryRun: false });
}

/** Create a machine without a question: the smallest image that is here, or else the smallest of all. Return its name. */
export async function createFirst(): Promise<string> {
  const [{ images }, { keys }] = await Promise.all([get<Catalog>("catalog"), get<Keys>("keys")]);
  const [image] = images.filter((each) => !each.missing).sort((one, other) => Number(other.local) - Number(one.local) || one.size - other.size);
  if (!image) {
    throw new Problem({ message: "There is no image that runs here", why: images[0]?.missing ?? "The catalogue is empty.", fix: "Add an image: paddock image add.", code: 0 });
  }
  const form = formOf(image, keys.map((key) => key.text), me()?.dialects[0] ?? "kubevirt");
  const composed = await post<Composed>("compose", form);
  const [problem] = composed.errors;
  if (problem) throw new Problem({ message: problem.message, why: "", fix: problem.fix, code: 0 });
  await create(composed.yaml);
  return form.name;
}
