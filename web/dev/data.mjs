// Plausible objects for the development server: the same ones each time.
const GiB = 1024 ** 3;
const MiB = 1024 ** 2;

/** A generator of numbers from 0 to 1 that begins anew with each start. */
export function chance(seed) {
  let state = seed;
  return () => {
    state = (state * 1664525 + 1013904223) % 4294967296;
    return state / 4294967296;
  };
}

const random = chance(7);
const pick = (values) => values[Math.floor(random() * values.length)];
const ago = (seconds) => new Date(Date.now() - seconds * 1000).toISOString().replace(/\.\d+Z$/, "Z");

const DIALECTS = [
  { word: "vm", dialect: "kubevirt" },
  { word: "vm", dialect: "kubevirt" },
  { word: "vm", dialect: "kubermatic" },
  { word: "stakater", dialect: "stakater" },
  { word: "virtrigaud", dialect: "virtrigaud" },
  { word: "vitistack", dialect: "vitistack" },
];
const NAMES = ["web", "db", "cache", "mail", "build", "runner", "gateway", "queue", "search", "metrics", "vault", "dns", "ci", "edge"];
const GUESTS = [
  ["Debian GNU/Linux 13", "debian-13"],
  ["Debian GNU/Linux 12", "debian-12"],
  ["Ubuntu 24.04 LTS", "ubuntu-24.04"],
  ["Fedora Linux 43", "fedora-43"],
  ["Alpine Linux 3.22", "alpine-3.22"],
  ["Rocky Linux 10", "rocky-10"],
  ["openSUSE Leap 16.0", "opensuse-16"],
  ["Windows Server 2025", "windows-2025"],
  ["FreeBSD 14.3", "freebsd-14"],
];
export const NAMESPACES = ["default", "team-a", "team-b", "staging", "production"];
const STATES = [
  { state: "good", status: "Running", reason: "", verbs: ["stop", "restart", "pause", "reset", "suspend", "protect", "snapshot", "clone", "delete"] },
  { state: "off", status: "Stopped", reason: "", verbs: ["start", "protect", "snapshot", "clone", "delete"] },
  { state: "waits", status: "Paused", reason: "a person paused the guest", verbs: ["unpause", "stop", "delete"] },
  { state: "going", status: "Starting", reason: "the image is downloading, 42%", verbs: ["stop", "delete"] },
  { state: "going", status: "Migrating", reason: "to node rack1-b", verbs: ["stop", "delete"] },
  { state: "bad", status: "ErrorUnschedulable", reason: "no node has 64 GiB of free memory", verbs: ["stop", "delete"] },
  { state: "waits", status: "WaitingForVolumeBinding", reason: "DataVolume root is downloaded: 42 %", verbs: ["stop", "delete"] },
  { state: "bad", status: "CrashLoopBackOff", reason: "QEMU exited with status 1; the next start is in 40 s", verbs: ["stop", "delete"] },
  { state: "unknown", status: "Unknown", reason: "the provider has not answered for 3 min", verbs: ["delete"] },
];
const likely = () => {
  const value = random();
  if (value < 0.72) return STATES[0];
  if (value < 0.87) return STATES[1];
  return STATES[2 + Math.floor(((value - 0.87) / 0.13) * 6)];
};

export function machines(count) {
  const rows = [];
  const used = new Map();
  for (let index = 0; index < count; index += 1) {
    const { word, dialect } = pick(DIALECTS);
    const base = pick(NAMES);
    const number = (used.get(base) ?? 0) + 1;
    used.set(base, number);
    const name = number === 1 ? base : `${base}-${number}`;
    const namespace = index < 12 ? "default" : pick(NAMESPACES);
    const chosen = index === 0 ? STATES[0] : index === 3 ? STATES[5] : likely();
    const [guest, image] = pick(GUESTS);
    const runs = chosen.state === "good" || chosen.status === "Migrating" || chosen.status === "Paused";
    const created = Math.floor(random() ** 3 * 200 * 86400) + 90;
    rows.push({
      id: `${word}/${namespace}/${name}`,
      namespace,
      name,
      dialect,
      status: chosen.status,
      state: chosen.state,
      reason: chosen.reason,
      ips: runs ? [`10.${namespace.length}.${index >> 8}.${index & 255}`, ...(random() < 0.3 ? [`fd00:42::${index.toString(16)}`] : [])] : [],
      cpus: pick([1, 1, 2, 2, 4, 8, 16]),
      memory: pick([0.5, 1, 2, 2, 4, 8, 16, 32]) * GiB,
      created: ago(created),
      since: ago(Math.floor(created * random())),
      node: runs ? pick(["rack1-a", "rack1-b", "rack2-a"]) : "",
      image,
      disks: pick([1, 1, 1, 2, 3]),
      guest: runs ? guest : "",
      protected: random() < 0.06,
      labels: { app: base, ...(random() < 0.5 ? { tier: pick(["frontend", "backend", "batch"]) } : {}), ...(random() < 0.2 ? { "team.example.org/owner": pick(["ada", "grace", "linus"]) } : {}) },
      verbs: chosen.verbs,
    });
  }
  return rows;
}

export function usageOf(machine) {
  const load = random() ** 2;
  return {
    id: machine.id,
    cpu: machine.cpus * load,
    memory: machine.memory * (0.15 + 0.8 * random()),
    guest: machine.memory * (0.1 + 0.6 * random()),
    read: random() < 0.4 ? random() * 40 * MiB : 0,
    write: random() < 0.6 ? random() * 20 * MiB : 0,
    received: random() * 3 * MiB,
    sent: random() * 2 * MiB,
  };
}

const object = (group, kind, namespace, name, rest) => ({
  id: `${kind.toLowerCase()}s.${group}/${namespace}/${name}`,
  group,
  kind,
  namespace,
  name,
  state: "good",
  status: "Ready",
  created: ago(Math.floor(random() * 90 * 86400) + 60),
  cells: {},
  machines: [],
  percent: -1,
  keeps: "",
  ...rest,
});

export function topics(rows) {
  const some = rows.slice(0, 60);
  return {
    images: [
      object("", "Image of this host", "", "debian-13.qcow2", {
        status: "in the library",
        cells: { os: "debian-13", size: 2 * GiB, source: "https://images.example.org/debian-13.qcow2", text: "sha256:0123456789ab" },
        keeps: "paddock image rm 0123456789ab removes it",
      }),
      ...GUESTS.map(([guest, name], index) =>
      object("cdi.kubevirt.io", "DataSource", "images", name, {
        cells: { os: guest, size: (1 + index) * 300 * MiB, source: `https://images.example.org/${name}.qcow2`, text: guest },
        machines: some.filter((row) => row.image === name).map((row) => row.id),
        ...(index === 3 ? { state: "going", status: "is downloading", percent: 42 } : {}),
        ...(index === 5 ? { state: "bad", status: "cannot be read" } : {}),
        ...(index === 6 ? { state: "unknown", status: "not tried yet" } : {}),
      }),
      ),
    ],
    volumes: some.map((row, index) =>
      object("cdi.kubevirt.io", "DataVolume", row.namespace, `${row.name}-root`, {
        status: "Bound",
        cells: { size: 20 * GiB, class: "local", access: index % 5 ? ["ReadWriteOnce"] : ["ReadWriteMany"], mode: "Filesystem", source: row.image },
        machines: [row.id],
        keeps: `the machine ${row.name} uses it`,
      }),
    ),
    networks: [
      object("k8s.cni.cncf.io", "NetworkAttachmentDefinition", "default", "lab", { cells: { type: "bridge", bridge: "br-lab", subnet: "192.168.80.0/24", vlan: 80, mtu: 1500 }, machines: some.slice(0, 7).map((row) => row.id), keeps: "7 machines use it" }),
      object("k8s.cni.cncf.io", "NetworkAttachmentDefinition", "default", "backup", { cells: { type: "bridge", bridge: "br-backup", subnet: "10.90.0.0/16" } }),
    ],
    snapshots: some.slice(0, 14).map((row, index) =>
      object("snapshot.kubevirt.io", "VirtualMachineSnapshot", row.namespace, `${row.name}-before-upgrade`, {
        cells: { of: row.name, size: 1.1 * GiB * (1 + random()), consistency: index % 3 ? "file systems frozen" : "crash-consistent", ...(index % 4 ? {} : { parent: `${row.name}-fresh` }) },
        machines: [row.id],
        ...(index === 2 ? { state: "bad", status: "failed" } : {}),
      }),
    ),
    pools: [object("pool.kubevirt.io", "VirtualMachinePool", "default", "runners", { cells: { replicas: 12, ready: 11 }, state: "waits", status: "11 of 12 ready", machines: some.slice(20, 32).map((row) => row.id) })],
    providers: [
      object("infra.virtrigaud.io", "Provider", "default", "vsphere-east", { cells: { type: "vsphere", endpoint: "https://vc.example.org/sdk", version: "8.0.3", count: 14 } }),
      object("infra.virtrigaud.io", "Provider", "default", "proxmox-lab", { cells: { type: "proxmox", endpoint: "https://pve.example.org:8006", version: "9.2", count: 3 }, state: "bad", status: "Unreachable" }),
    ],
    migrations: some.slice(0, 3).map((row, index) =>
      object("kubevirt.io", "VirtualMachineInstanceMigration", row.namespace, `${row.name}-move`, {
        cells: { phase: index ? "Succeeded" : "Running", from: "rack1-a", to: "rack1-b" },
        machines: [row.id],
        ...(index ? { status: "succeeded" } : { state: "going", status: "is running", percent: 63 }),
      }),
    ),
    events: some.slice(0, 40).map((row, index) => ({
      id: `event-${index}`,
      time: ago(index * 47 + 5),
      type: index % 6 === 3 ? "Warning" : "Normal",
      reason: index % 6 === 3 ? "FailedMount" : pick(["Started", "Created", "SyncedReplica", "SuccessfulCreate"]),
      message: index % 6 === 3 ? "the volume root is still attached to another node" : `the guest of ${row.name} started`,
      object: `VirtualMachine/${row.name}`,
      namespace: row.namespace,
      count: 1 + (index % 4),
      source: "virt-controller",
    })),
  };
}

export const tasks = (rows) => [
  { id: "datavolumes.cdi.kubevirt.io/images/fedora-43", title: "Download of image fedora-43", machine: "", namespace: "images", state: "running", percent: 42, text: "212 of 505 MiB", started: ago(75), ended: "", keeps: "" },
  { id: `virtualmachineinstancemigrations.kubevirt.io/default/${rows[0].name}`, title: `Migration of ${rows[0].name}`, machine: rows[0].id, namespace: rows[0].namespace, state: "running", percent: 63, text: "to rack1-b", started: ago(21), ended: "", keeps: "" },
  { id: `virtualmachinesnapshots.snapshot.kubevirt.io/default/${rows[2].name}`, title: `Snapshot of ${rows[2].name}`, machine: rows[2].id, namespace: rows[2].namespace, state: "failed", percent: -1, text: "the guest agent did not freeze the file systems in 10 s", started: ago(400), ended: ago(380), keeps: "it has ended" },
  { id: `virtualmachineclones.clone.kubevirt.io/default/${rows[1].name}`, title: `Clone of ${rows[1].name}`, machine: rows[1].id, namespace: rows[1].namespace, state: "done", percent: 100, text: "20 GiB in 31 s", started: ago(800), ended: ago(769), keeps: "it has ended" },
];

export const me = {
  user: "",
  server: "https://127.0.0.1:6443",
  version: "v1.34.0+paddock.0.1.0",
  own: true,
  namespace: "default",
  namespaces: NAMESPACES,
  dialects: ["kubevirt", "kubermatic", "stakater", "virtrigaud", "vitistack"],
  missing: [],
};

export const catalog = {
  images: GUESTS.map(([guest, name], index) => {
    const [, os, version] = /^(.*?) ([\d.]+.*)$/.exec(guest);
    return {
      id: name,
      name: os,
      version,
      os: name.split("-")[0],
      arch: "amd64",
      address: `https://images.example.org/${name}.qcow2`,
      size: (1 + index) * 180 * MiB,
      minDisk: (index === 7 ? 40 : index === 4 ? 1 : 10) * GiB,
      minMemory: (index === 7 ? 2048 : index === 4 ? 128 : 512) * MiB,
      user: name.split("-")[0],
      local: index < 3,
      missing: index === 8 ? "this host has no UEFI firmware for it; install the package ovmf" : "",
    };
  }),
};

export const keys = {
  keys: [
    { name: "ada@laptop", type: "ssh-ed25519", text: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMockKeyOfAdaForTheDevelopmentServer0001 ada@laptop", source: "~/.ssh/id_ed25519.pub" },
    { name: "ada@desk", type: "ssh-rsa", text: "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQDMockKeyOfAdaForTheDevelopmentServer0002 ada@desk", source: "~/.ssh/id_rsa.pub" },
  ],
};

export function host(rows) {
  const node = (name, state, cpus, memory, share) => ({
    name,
    state,
    status: state === "good" ? "Ready" : "MemoryPressure",
    os: "Debian GNU/Linux 13",
    kernel: "6.12.48",
    arch: "amd64",
    accelerator: "kvm",
    cpus,
    memory: memory * GiB,
    disk: 1800 * GiB,
    usedCpus: cpus * share,
    usedMemory: memory * GiB * (share + 0.15),
    usedDisk: 1800 * GiB * 0.61,
    promisedCpus: cpus * 1.4,
    promisedMemory: memory * GiB * 0.82,
    machines: rows.filter((row) => row.node === name).length,
    pressure: { cpu: share * 12, memory: share * 3, io: 1.2 },
  });
  return {
    nodes: [node("rack1-a", "good", 32, 256, 0.42), node("rack1-b", "waits", 32, 256, 0.81), node("rack2-a", "good", 64, 512, 0.2)],
    checks: [
      { name: "KVM", state: "good", text: "/dev/kvm can be opened", fix: "" },
      { name: "QEMU", state: "good", text: "QEMU 10.0.2", fix: "" },
      { name: "UEFI firmware", state: "waits", text: "no firmware with Secure Boot was found", fix: "Install the package ovmf." },
      { name: "free space", state: "bad", text: "/var/lib/paddock has 4.1 GiB left", fix: "Delete images that no machine uses: paddock image prune" },
    ],
  };
}
