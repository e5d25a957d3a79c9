// One machine in detail, for the development server.
import { chance } from "./data.mjs";

const GiB = 1024 ** 3;
const ago = (seconds) => new Date(Date.now() - seconds * 1000).toISOString().replace(/\.\d+Z$/, "Z");

const VERBS = ["start", "stop", "restart", "pause", "unpause", "reset", "suspend", "resume", "protect", "unprotect", "delete", "snapshot", "restore", "clone"];

const yaml = (row) => `apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: ${row.name}
  namespace: ${row.namespace}
  labels:
${Object.entries(row.labels).map(([key, value]) => `    ${key}: ${value}`).join("\n")}
spec:
  runStrategy: Always
  template:
    spec:
      domain:
        cpu:
          cores: ${row.cpus}
        memory:
          guest: ${row.memory / GiB}Gi
        devices:
          disks:
            - name: root
              disk:
                bus: virtio
            - name: seed
              disk:
                bus: virtio
          interfaces:
            - name: default
              masquerade: {}
      networks:
        - name: default
          pod: {}
      volumes:
        - name: root
          dataVolume:
            name: ${row.name}-root
        - name: seed
          cloudInitNoCloud:
            userData: |
              #cloud-config
              hostname: ${row.name}
`;

export function detail(row) {
  const runs = row.state === "good";
  const front = row.dialect !== "kubevirt" && row.dialect !== "kubermatic";
  return {
    row,
    made: front ? `VirtualMachine/${row.name}` : "",
    runStrategy: "Always",
    firmware: "UEFI",
    machineType: "q35",
    accelerator: "kvm",
    objects: [
      { group: "kubevirt.io", version: "v1", kind: "VirtualMachine", namespace: row.namespace, name: row.name, role: "written", yaml: yaml(row) },
      { group: "kubevirt.io", version: "v1", kind: "VirtualMachineInstance", namespace: row.namespace, name: row.name, role: "made", yaml: yaml(row).replace("kind: VirtualMachine", "kind: VirtualMachineInstance") },
    ],
    disks: [
      { name: "root", type: "disk", bus: "virtio", size: 20 * GiB, used: 3.4 * GiB, source: `image ${row.image}`, claim: `${row.name}-root`, storageClass: "local", state: "Bound" },
      { name: "data", type: "disk", bus: "virtio", size: 100 * GiB, used: 41 * GiB, source: "blank", claim: `${row.name}-data`, storageClass: "local", state: "Bound" },
      { name: "seed", type: "disk", bus: "virtio", size: 1024 ** 2, used: -1, source: "cloud-init", claim: "", storageClass: "", state: "" },
    ],
    nics: [
      { name: "default", network: "pod network", binding: "masquerade", model: "virtio", mac: "52:54:00:4a:17:01", addresses: row.ips, state: runs ? "up" : "" },
      { name: "lab", network: "lab", binding: "bridge", model: "virtio", mac: "52:54:00:4a:17:02", addresses: runs ? ["192.168.80.17"] : [], state: runs ? "up" : "" },
    ],
    snapshots: [
      { name: `${row.name}-fresh`, state: "Ready", created: ago(30 * 86400), consistency: "file systems frozen", size: 1.1 * GiB, parent: "", current: false },
      { name: `${row.name}-configured`, state: "Ready", created: ago(21 * 86400), consistency: "file systems frozen", size: 0.6 * GiB, parent: `${row.name}-fresh`, current: false },
      { name: `${row.name}-upgraded`, state: "Ready", created: ago(2 * 86400), consistency: "crash-consistent", size: 0.4 * GiB, parent: `${row.name}-configured`, current: true },
      { name: `${row.name}-experiment`, state: "Ready", created: ago(86400), consistency: "crash-consistent", size: 0.2 * GiB, parent: `${row.name}-fresh`, current: false },
    ],
    conditions: [
      { type: "Ready", status: runs ? "True" : "False", reason: runs ? "" : row.status, message: row.reason, changed: row.since, good: runs },
      { type: "LiveMigratable", status: "True", reason: "", message: "", changed: row.since, good: true },
      { type: "AgentConnected", status: runs ? "True" : "False", reason: "", message: "", changed: row.since, good: runs },
    ],
    pending: runs
      ? [
          { field: "spec.template.spec.domain.cpu.cores", from: String(row.cpus), to: String(row.cpus * 2), effect: "restart", why: "the number of cores is fixed while the guest runs" },
          { field: "spec.template.spec.domain.memory.guest", from: "2Gi", to: "4Gi", effect: "live", why: "memory is added while the guest runs" },
        ]
      : [],
    guest: {
      agent: runs,
      os: row.guest,
      kernel: runs ? "6.12.48+deb13-amd64" : "",
      hostname: runs ? row.name : "",
      timezone: runs ? "UTC" : "",
      users: runs ? [{ name: "ada", since: ago(5400) }] : [],
      filesystems: runs
        ? [
            { mount: "/", type: "ext4", used: 3.1 * GiB, size: 19.5 * GiB },
            { mount: "/srv", type: "xfs", used: 92 * GiB, size: 99 * GiB },
          ]
        : [],
    },
    cloudInit: { userData: `#cloud-config\nhostname: ${row.name}\nssh_authorized_keys:\n  - ssh-ed25519 AAAAC3Nz… ada@laptop\n`, networkData: "version: 2\nethernets:\n  enp1s0:\n    dhcp4: true\n", note: "" },
    access: {
      ssh: runs ? `ssh debian@${row.ips[0]}` : "",
      console: `paddock console ${row.id.split("/")[0]}/${row.name} -n ${row.namespace}`,
      vnc: `virtctl vnc ${row.name} -n ${row.namespace}`,
      exec: `paddock exec ${row.name} -n ${row.namespace} -- uname -a`,
      note: runs ? "" : "The machine does not run.",
    },
    actions: VERBS.map((verb) => ({ verb, allowed: row.verbs.includes(verb), reason: row.verbs.includes(verb) ? "" : `the machine is ${row.status}` })),
    graph: {
      nodes: [
        { id: "vm", kind: "VirtualMachine", name: row.name, namespace: row.namespace, state: row.state, status: row.status, machine: row.id },
        { id: "vmi", kind: "VirtualMachineInstance", name: row.name, namespace: row.namespace, state: row.state, status: row.status, machine: "" },
        { id: "dv", kind: "DataVolume", name: `${row.name}-root`, namespace: row.namespace, state: "good", status: "Succeeded", machine: "" },
        { id: "pvc", kind: "PersistentVolumeClaim", name: `${row.name}-root`, namespace: row.namespace, state: "good", status: "Bound", machine: "" },
        { id: "net", kind: "NetworkAttachmentDefinition", name: "lab", namespace: row.namespace, state: "good", status: "", machine: "" },
        { id: "snap", kind: "VirtualMachineSnapshot", name: `${row.name}-upgraded`, namespace: row.namespace, state: "good", status: "Ready", machine: "" },
        { id: "node", kind: "Node", name: row.node || "none", namespace: "", state: "good", status: "Ready", machine: "" },
      ],
      edges: [
        { from: "vm", to: "vmi", label: "makes" },
        { from: "vm", to: "dv", label: "template" },
        { from: "dv", to: "pvc", label: "fills" },
        { from: "vmi", to: "pvc", label: "disk root" },
        { from: "vmi", to: "net", label: "interface lab" },
        { from: "vmi", to: "node", label: "runs on" },
        { from: "snap", to: "vm", label: "of" },
      ],
    },
  };
}

export function why(row) {
  const cause = {
    rule: "unschedulable",
    title: "No node has room for the machine",
    object: `VirtualMachineInstance/${row.name}`,
    cause: "The guest asks for 64 GiB of memory; the largest node has 12 GiB free.",
    evidence: [{ where: `condition PodScheduled of ${row.name}`, text: "0/3 nodes are available: 3 Insufficient memory.", since: ago(340) }],
    fix: "Ask for less memory, or stop a machine.",
    commands: [`paddock set ${row.name} --memory 8Gi -n ${row.namespace}`],
  };
  const hint = { ...cause, rule: "agent", title: "The guest agent does not answer", cause: "qemu-guest-agent is not installed in the guest.", evidence: [], fix: "Install it in the guest.", commands: ["sudo apt-get install qemu-guest-agent"] };
  if (row.state === "bad") return { state: "fails", word: "does not run", causes: [cause], hints: [hint], gaps: ["the log of the guest: the machine does not run"] };
  return { state: "good", word: "runs", causes: [], hints: [hint], gaps: [] };
}

export function usage(range) {
  const step = { "1h": 15, "24h": 240, "7d": 1800 }[range] ?? 15;
  const length = { "1h": 240, "24h": 360, "7d": 336 }[range] ?? 240;
  const end = Math.floor(Date.now() / 1000 / step) * step;
  const random = chance(11);
  const walk = (middle, spread) => {
    let value = middle;
    return Array.from({ length }, (_, index) => {
      value = Math.max(0, value + (random() - 0.5) * spread + (middle - value) * 0.05);
      return index > length * 0.55 && index < length * 0.58 ? null : value;
    });
  };
  return {
    range,
    step,
    times: Array.from({ length }, (_, index) => end - (length - 1 - index) * step),
    series: {
      cpu: walk(0.8, 0.3),
      memory: walk(1.4 * GiB, 0.05 * GiB),
      guest: walk(1.1 * GiB, 0.05 * GiB),
      read: walk(3e6, 2e6),
      write: walk(6e6, 4e6),
      received: walk(9e5, 5e5),
      sent: walk(4e5, 3e5),
      steal: walk(0.02, 0.02),
      pressureCpu: walk(2, 2),
      pressureMemory: walk(0.4, 0.5),
      pressureIo: walk(1, 2),
    },
    missing: "",
  };
}

export const history = (row) => ({
  history: [
    { time: ago(3600), manager: "paddock", operation: "Apply", object: `VirtualMachine/${row.name}`, fields: ["spec.template.spec.domain.memory.guest"] },
    { time: ago(86400), manager: "kubectl-edit", operation: "Update", object: `VirtualMachine/${row.name}`, fields: ["spec.runStrategy", "metadata.labels.app"] },
    { time: row.created, manager: "kubectl-client-side-apply", operation: "Update", object: `VirtualMachine/${row.name}`, fields: ["spec"] },
  ],
});

export const log = (row, kind) =>
  Array.from({ length: 80 }, (_, index) => `[${(index * 0.137).toFixed(6).padStart(12)}] ${kind}: ${row.name}: line ${index + 1} of the log`).join("\n");
