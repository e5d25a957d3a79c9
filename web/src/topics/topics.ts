import type { IconName } from "../parts/icon";
import type { Topic } from "../state/live";
import type { CellColumn } from "./columns";

export type ObjectTopic = Exclude<Topic, "machines" | "usage" | "tasks" | "events">;

interface TopicInfo {
  title: string;
  /** what the objects are for, and how one gets them; for a page without rows */
  about: string;
  icon: IconName;
  own: readonly CellColumn[];
}

/** The pages of objects that are no machines. `own` has the cells that the server sends for the topic. */
export const TOPICS: Readonly<Record<ObjectTopic, TopicInfo>> = {
  images: {
    title: "Images",
    about: "What the library of the host has, and objects that name images: DataSources, DataImportCrons, and those of the other dialects. The dialog of a new machine has the catalogue, too.",
    icon: "image",
    own: [
      { id: "os", title: "System", form: "os", width: "minmax(130px, 1.2fr)" },
      { id: "size", title: "Size", form: "bytes" },
      { id: "source", title: "Source", form: "copy", width: "minmax(150px, 2fr)" },
      { id: "text", title: "About", width: "minmax(130px, 1.3fr)" },
    ],
  },
  volumes: {
    title: "Volumes",
    about: "Disks that outlive the guest: PersistentVolumeClaims, and the DataVolumes that fill them.",
    icon: "disk",
    own: [
      { id: "size", title: "Size", form: "bytes" },
      { id: "class", title: "Storage class" },
      { id: "access", title: "Access" },
      { id: "mode", title: "Mode" },
      { id: "source", title: "Source" },
    ],
  },
  snapshots: {
    title: "Snapshots",
    about: "A snapshot keeps the disks of a machine as they are at one moment. Take one from the menu of a machine.",
    icon: "snapshot",
    own: [
      { id: "of", title: "Of" },
      { id: "size", title: "Size", form: "bytes" },
      { id: "consistency", title: "Consistency" },
      { id: "parent", title: "Parent" },
    ],
  },
  networks: {
    title: "Networks",
    about: "Networks that machines attach to besides the pod network: NetworkAttachmentDefinitions, and those of the other dialects.",
    icon: "network",
    own: [
      { id: "type", title: "Type" },
      { id: "bridge", title: "Bridge" },
      { id: "vlan", title: "VLAN", form: "number" },
      { id: "subnet", title: "Subnet", form: "copy" },
      { id: "mtu", title: "MTU", form: "number" },
    ],
  },
  pools: {
    title: "Pools",
    about: "A pool keeps a number of equal machines: VirtualMachinePools, replica sets, and VMSets.",
    icon: "pool",
    own: [
      { id: "ready", title: "Ready", form: "number" },
      { id: "replicas", title: "Wanted", form: "number" },
      { id: "paused", title: "Paused" },
    ],
  },
  providers: {
    title: "Providers",
    about: "A Provider leads to another hypervisor, such as vSphere, Proxmox VE or libvirt.",
    icon: "provider",
    own: [
      { id: "type", title: "Type" },
      { id: "endpoint", title: "Endpoint", form: "copy", width: "minmax(160px, 2fr)" },
      { id: "version", title: "Version" },
      { id: "count", title: "Count", form: "number" },
    ],
  },
  migrations: {
    title: "Migrations",
    about: "A migration moves a running machine to another node, or to another provider.",
    icon: "migration",
    own: [
      { id: "phase", title: "Phase" },
      { id: "from", title: "From" },
      { id: "to", title: "To" },
      { id: "text", title: "About" },
    ],
  },
};

export const isObjectTopic = (page: string): page is ObjectTopic => page in TOPICS;

/** The topics that a page follows besides those that every page does. */
export function topicsOf(page: string): readonly Topic[] {
  if (page === "machines" || page === "machine") return ["usage"];
  return page === "events" || isObjectTopic(page) ? [page] : [];
}
