import { bytes } from "../format/amounts";
import type { CatalogImage, FormProblem, HostPort, MachineForm } from "../generated/answers";

/** A size that one click chooses. */
export interface Size {
  id: string;
  text: string;
  cpus: number;
  memory: string;
}

const GIB = 1024 ** 3;

export const SIZES: readonly Size[] = [
  { id: "small", text: "Small", cpus: 1, memory: "1Gi" },
  { id: "medium", text: "Medium", cpus: 2, memory: "4Gi" },
  { id: "large", text: "Large", cpus: 4, memory: "8Gi" },
  { id: "huge", text: "Huge", cpus: 8, memory: "16Gi" },
];

/** The smallest size in which an image runs. */
export function sizeFor(image: CatalogImage): Size {
  const fits = SIZES.find((size) => quantity(size.memory) >= image.minMemory);
  return fits ?? { id: "", text: "", cpus: 2, memory: `${Math.ceil(image.minMemory / GIB)}Gi` };
}

const UNITS: Readonly<Record<string, number>> = { "": 1, Ki: 1024, Mi: 1024 ** 2, Gi: GIB, Ti: 1024 ** 4, k: 1e3, M: 1e6, G: 1e9, T: 1e12 };

/** The bytes of a quantity such as `512Mi`; -1 if it is none. */
export function quantity(text: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*(Ki|Mi|Gi|Ti|k|M|G|T|)$/.exec(text.trim());
  if (!match) return -1;
  return Number(match[1]) * (UNITS[match[2] ?? ""] ?? 1);
}

/** A name that no machine has: `debian`, then `debian-2`. */
export function freeName(base: string, taken: ReadonlySet<string>): string {
  const stem = base.toLowerCase().replace(/[^a-z0-9-]+/g, "-").replace(/^-+|-+$/g, "") || "machine";
  if (!taken.has(stem)) return stem;
  for (let number = 2; ; number += 1) {
    const name = `${stem}-${number}`;
    if (!taken.has(name)) return name;
  }
}

/** Read ports such as `8080:80, 5353:53/UDP`. Throws an error that names the part that is wrong. */
export function parsePorts(text: string): HostPort[] {
  return parts(text).map((part) => {
    const match = /^(\d{1,5}):(\d{1,5})(?:\/(tcp|udp))?$/i.exec(part);
    const [host, guest] = [Number(match?.[1]), Number(match?.[2])];
    if (!match || host < 1 || host > 65535 || guest < 1 || guest > 65535) {
      throw new Error(`“${part}” is no pair of ports. Write HOST:GUEST, such as 8080:80 or 5353:53/UDP.`);
    }
    return { host, guest, protocol: (match[3] ?? "TCP").toUpperCase() };
  });
}

/** Read labels such as `app=web, tier=front`. Throws an error that names the part that is wrong. */
export function parseLabels(text: string): Record<string, string> {
  return Object.fromEntries(
    parts(text).map((part) => {
      const at = part.indexOf("=");
      if (at < 1) throw new Error(`“${part}” is no label. Write KEY=VALUE, such as app=web.`);
      return [part.slice(0, at).trim(), part.slice(at + 1).trim()];
    }),
  );
}

const parts = (text: string): string[] =>
  text
    .split(/[,\n]/)
    .map((part) => part.trim())
    .filter(Boolean);

/** The form as it is sent. User data of one's own stand for user, keys and password. */
export function sent(form: MachineForm): MachineForm {
  return form.userData.trim() ? { ...form, user: "", keys: [], password: "" } : { ...form, userData: "" };
}

/** What the page can see of a form without the server. The server judges the rest. */
export function problemsOf(form: MachineForm, image: CatalogImage | undefined): FormProblem[] {
  const found: FormProblem[] = [];
  const wrong = (field: string, message: string, fix: string): void => void found.push({ field, message, fix });
  if (!image) wrong("image", "No image is chosen", "Choose one of the images.");
  else if (image.missing) wrong("image", `${image.name} cannot be used here: ${image.missing}`, "Choose another image.");
  if (form.memory && quantity(form.memory) < 0) wrong("memory", `“${form.memory}” is no amount of memory`, "Write a number with a unit, such as 2Gi.");
  else if (image && form.memory && quantity(form.memory) < image.minMemory) {
    wrong("memory", `${image.name} needs ${bytes(image.minMemory)} of memory`, "Choose a larger size.");
  }
  if (form.disk && quantity(form.disk) < 0) wrong("disk", `“${form.disk}” is no size of a disk`, "Write a number with a unit, such as 20Gi.");
  else if (image && form.disk && quantity(form.disk) < image.minDisk) wrong("disk", `${image.name} needs a disk of ${bytes(image.minDisk)}`, "Make the disk larger.");
  if (!Number.isInteger(form.cpus) || form.cpus < 1) wrong("cpus", "A machine has at least one CPU", "Enter 1 or more.");
  if (!Number.isInteger(form.count) || form.count < 1) wrong("count", "At least one machine is made", "Enter 1 or more.");
  return found;
}

/** What is wrong with a field, in one text. */
export function errorOf(problems: readonly FormProblem[], ...fields: string[]): string {
  const found = problems.find((each) => fields.includes(each.field));
  return found ? `${found.message}. ${found.fix}`.trim() : "";
}
