"""The rows of the machine itself."""

from typing import Any

from tests.unit.dialects.virtrigaud.translate.rows import CLASS, DATA, DEVICES, DOMAIN, NETWORK, ROOT, SPEC, VM, Row

GONE: Any = None
INTERFACE, DISKS, VOLUMES = f"{DEVICES}.interfaces.0", f"{DEVICES}.disks", f"{SPEC}.volumes"
CARD = {"name": "eth0", "networkRef": {"name": "lan"}}
MAC = "02:00:00:00:00:0a"


def row(what: str, changes: dict[str, Any], machine: dict[str, Any], *lost: str, **others: Any) -> Row:
    return Row(what, {VM: changes, **others.get("others", {})}, machine, lost=tuple(f"VirtualMachine/web spec{each}" for each in lost))


def disk(**fields: Any) -> dict[str, Any]:
    return {".disks": [{"name": "data", "sizeGiB": 5, **fields}]}


def network_data(*cards: str) -> str:
    return "version: 2\nethernets:\n" + "".join(cards)


STATIC = f"""  eth0:
    match:
      macaddress: {MAC}
    addresses:
    - 10.0.0.5/16
    routes:
    - to: 0.0.0.0/0
      via: 10.0.0.1
    nameservers:
      addresses:
      - 10.0.0.2
      - 1.1.1.1
"""
ADDRESS = {**CARD, "macAddress": MAC, "ipAddress": "10.0.0.5", "prefix": 16, "gateway": "10.0.0.1", "dns": "10.0.0.2, 1.1.1.1"}
TOLD = f"{VOLUMES}.1.cloudInitNoCloud"

ROWS = (
    row("a machine runs when nothing is said", {}, {"spec.runStrategy": "Always"}),
    row("powerState On", {".powerState": "On"}, {"spec.runStrategy": "Always"}),
    row("powerState Off", {".powerState": "Off"}, {"spec.runStrategy": "Halted"}),
    row("powerState OffGraceful", {".powerState": "OffGraceful"}, {"spec.runStrategy": "Halted"}, ".powerState"),
    row("60 seconds to shut down when nothing is said", {}, {f"{SPEC}.terminationGracePeriodSeconds": 60}),
    row("gracefulShutdownTimeout", {".lifecycle.gracefulShutdownTimeout": "2m"}, {f"{SPEC}.terminationGracePeriodSeconds": 120}),
    row(
        "parts of seconds",
        {".lifecycle.gracefulShutdownTimeout": "1500ms"},
        {f"{SPEC}.terminationGracePeriodSeconds": 2},
        ".lifecycle.gracefulShutdownTimeout",
    ),
    row("preStop", {".lifecycle.preStop.exec.command": ["true"]}, {}, ".lifecycle.preStop"),
    row("postStart", {".lifecycle.postStart.snapshot.name": "s"}, {}, ".lifecycle.postStart"),
    row("revertToRef", {".snapshot.revertToRef.name": "s"}, {}, ".snapshot"),
    row("placementRef", {".placementRef.name": "p"}, {}, ".placementRef"),
    row("placement.host", {".placement.host": "node-1"}, {f"{SPEC}.nodeSelector": {"kubernetes.io/hostname": "node-1"}}),
    row("a host that is no node", {".placement.host": "node 1"}, {f"{SPEC}.nodeSelector": None}, ".placement.host"),
    *(
        row(f"placement.{name}", {f".placement.{name}": "x"}, {}, ".placement")
        for name in ("cluster", "datastore", "storagePod", "folder", "resourcePool")
    ),
    row("tags", {".tags": ["a", "b"]}, {}),
    row(
        "own sizes",
        {".resources": {"cpu": 5, "memoryMiB": 3072}},
        {f"{DOMAIN}.cpu.cores": 5, f"{DOMAIN}.memory.guest": "3072Mi", f"{DOMAIN}.memory.maxGuest": "3072Mi"},
    ),
    row(
        "graphics processors",
        {".resources.gpu": {"count": 2, "type": "nvidia-l4", "memory": 24576}},
        {f"{DEVICES}.gpus": [{"name": "gpu0", "deviceName": "nvidia-l4"}, {"name": "gpu1", "deviceName": "nvidia-l4"}]},
        ".resources.gpu.memory",
    ),
    row("graphics processors without a type", {".resources.gpu": {"count": 2}}, {f"{DEVICES}.gpus": None}, ".resources.gpu"),
    row(
        "the root disk",
        {},
        {
            f"{DISKS}.0": {"name": "rootdisk", "disk": {"bus": "virtio"}, "bootOrder": 1},
            f"{VOLUMES}.0": {"name": "rootdisk", "dataVolume": {"name": "web-rootdisk"}},
            "spec.dataVolumeTemplates.0.metadata.name": "web-rootdisk",
        },
    ),
    row(
        "a data disk",
        disk(),
        {
            f"{DISKS}.1": {"name": "data", "disk": {"bus": "virtio"}},
            f"{VOLUMES}.1": {"name": "data", "dataVolume": {"name": "web-data"}},
            "spec.dataVolumeTemplates.1.metadata.name": "web-data",
            f"{DATA}.source": {"blank": {}},
            f"{DATA}.storage": {"resources": {"requests": {"storage": "5Gi"}}},
        },
    ),
    row(
        "a data disk called rootdisk",
        {".disks": [{"name": "rootdisk", "sizeGiB": 5}]},
        {f"{DISKS}.0.name": "rootdisk-1", f"{DISKS}.1.name": "rootdisk"},
    ),
    row("a thick disk", disk(type="thick"), {f"{DATA}.preallocation": True}),
    row("an eager disk", disk(type="eagerzeroedthick"), {f"{DATA}.preallocation": True}, ".disks[0].type"),
    row("a disk on ssd", disk(type="ssd"), {f"{DATA}.preallocation": None}, ".disks[0].type"),
    row("expandPolicy Online", disk(expandPolicy="Online"), {}, ".disks[0].expandPolicy"),
    row("storageClass", disk(storageClass="gold"), {f"{DATA}.storage.storageClassName": "gold", f"{ROOT}.storage.storageClassName": None}),
    row(
        "storageClass over the class's",
        disk(storageClass="gold"),
        {f"{DATA}.storage.storageClassName": "gold", f"{ROOT}.storage.storageClassName": "fast"},
        others={CLASS: {".diskDefaults.storageClass": "fast"}},
    ),
    row(
        "a storageClass that cannot be one", disk(storageClass="A B"), {f"{DATA}.storage.storageClassName": None}, ".disks[0].storageClass"
    ),
    row("scsi", disk(scsi={}), {f"{DISKS}.1": {"name": "data", "disk": {"bus": "scsi"}}}),
    row(
        "scsi controllers",
        disk(scsi={"controller": 2, "controllerType": "lsilogic"}),
        {f"{DISKS}.1.disk.bus": "scsi"},
        ".disks[0].scsi.controller",
        ".disks[0].scsi.controllerType",
    ),
    row(
        "a shared disk",
        disk(scsi={"sharedBus": "virtualSharing"}),
        {f"{DISKS}.1.shareable": True, f"{DATA}.storage.accessModes": ["ReadWriteMany"], f"{DATA}.storage.volumeMode": "Block"},
    ),
    row(
        "a physically shared disk", disk(scsi={"sharedBus": "physicalSharing"}), {f"{DISKS}.1.shareable": True}, ".disks[0].scsi.sharedBus"
    ),
    row(
        "importedDisk",
        {".imageRef": GONE, ".importedDisk": {"diskID": "old-disk"}},
        {f"{VOLUMES}.0": {"name": "rootdisk", "persistentVolumeClaim": {"claimName": "old-disk"}}, "spec.dataVolumeTemplates": None},
    ),
    row(
        "importedDisk with its origin",
        {
            ".imageRef": GONE,
            ".importedDisk": {
                "diskID": "Old_Disk",
                "path": "/x",
                "format": "raw",
                "source": "manual",
                "sizeGiB": 4,
                "migrationRef": {"name": "m"},
            },
        },
        {f"{VOLUMES}.0.persistentVolumeClaim.claimName": "old-disk"},
        ".importedDisk.diskID",
        ".importedDisk.path",
        ".importedDisk.format",
        ".importedDisk.source",
        ".importedDisk.sizeGiB",
        ".importedDisk.migrationRef",
    ),
    row("macAddress", {".networks": [{**CARD, "macAddress": MAC}]}, {f"{INTERFACE}.macAddress": MAC}),
    row(
        "a static address",
        {".networks": [ADDRESS]},
        {f"{TOLD}.networkData": network_data(STATIC), f"{TOLD}.userData": "#cloud-config\n{}\n"},
    ),
    row(
        "cards beside a static address",
        {".networks": [ADDRESS, {"name": "eth1", "networkRef": {"name": "lan"}}]},
        {
            f"{DEVICES}.interfaces.1.macAddress": "02:59:96:9d:5e:17",
            f"{TOLD}.networkData": network_data(STATIC, "  eth1:\n    match:\n      macaddress: 02:59:96:9d:5e:17\n    dhcp4: true\n"),
        },
    ),
    row(
        "a static address without a prefix",
        {".networks": [{**CARD, "macAddress": "02-00-00-00-00-0A", "ipAddress": "10.0.0.5"}]},
        {f"{TOLD}.networkData": network_data(f"  eth0:\n    match:\n      macaddress: {MAC}\n    addresses:\n    - 10.0.0.5/24\n")},
    ),
    row(
        "a static address in the network's own",
        {".networks": [{**CARD, "macAddress": MAC, "ipAddress": "10.0.0.5"}]},
        {f"{TOLD}.networkData": network_data(f"  eth0:\n    match:\n      macaddress: {MAC}\n    addresses:\n    - 10.0.0.5/20\n")},
        others={NETWORK: {".ipAllocation": {"type": "Static", "staticConfig": {"address": "10.0.1.1/20"}}}},
    ),
    row(
        "prefix, gateway and dns without an address",
        {".networks": [{**CARD, "prefix": 16, "gateway": "10.0.0.1", "dns": "10.0.0.2"}]},
        {f"{VOLUMES}.1": None, f"{INTERFACE}.macAddress": None},
        ".networks[0].prefix",
        ".networks[0].gateway",
        ".networks[0].dns",
    ),
    row(
        "an address for a guest with Ignition",
        {".networks": [{**CARD, "ipAddress": "10.0.0.5"}], ".userData.ignition.inline": "{}"},
        {f"{VOLUMES}.1.cloudInitConfigDrive": {"userData": "{}"}},
        ".networks[0].ipAddress",
    ),
    row(
        "no networks",
        {".networks": GONE},
        {f"{DEVICES}.interfaces": None, f"{SPEC}.networks": None, f"{DEVICES}.autoattachPodInterface": None},
    ),
    row(
        "cards without a network",
        {".networks": [{"name": "eth0"}, {"name": "eth1"}]},
        {
            f"{DEVICES}.interfaces": [{"name": "eth0", "model": "virtio", "masquerade": {}}],
            f"{SPEC}.networks": [{"name": "eth0", "pod": {}}],
        },
        ".networks[1]",
    ),
    row(
        "inline cloud-init",
        {".userData.cloudInit.inline": "#cloud-config\na: b\n"},
        {
            f"{VOLUMES}.1": {"name": "cloudinitdisk", "cloudInitNoCloud": {"userData": "#cloud-config\na: b\n"}},
            f"{DISKS}.1": {"name": "cloudinitdisk", "disk": {"bus": "virtio"}},
        },
    ),
    row("inline Ignition", {".userData.ignition.inline": '{"a": 1}'}, {f"{VOLUMES}.1.cloudInitConfigDrive": {"userData": '{"a": 1}'}}),
    row("the host name", {".metaData.cloudInit.inline": "local-hostname: db\n"}, {f"{SPEC}.hostname": "db"}),
    row(
        "the host name and more",
        {".metaData.cloudInit.inline": "hostname: db\nrole: x\n"},
        {f"{SPEC}.hostname": "db"},
        ".metaData.cloudInit",
    ),
    row(
        "a host name that is none",
        {".metaData.cloudInit.inline": "local-hostname: a_b\n"},
        {f"{SPEC}.hostname": None},
        ".metaData.cloudInit",
    ),
    row(
        "labels and annotations",
        {
            "metadata.labels": {"app": "web"},
            "metadata.annotations": {"example.com/a": "b", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
        },
        {
            "metadata.labels": {"app": "web", "app.kubernetes.io/managed-by": "paddock", "virtrigaud.io/virtual-machine": "web"},
            "spec.template.metadata.labels": {"app": "web", "virtrigaud.io/virtual-machine": "web"},
        },
    ),
)
