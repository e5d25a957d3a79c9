"""Changes of a KubeVirt machine: what then stands in VirtRigaud's objects, and the fields of all losses."""

from typing import Any

from tests.unit.dialects.virtrigaud.translate.making import Json

P = "spec.template.spec"
D = f"{P}.domain"
MACHINE: Json = {
    "apiVersion": "kubevirt.io/v1",
    "kind": "VirtualMachine",
    "metadata": {"name": "web"},
    "spec": {
        "runStrategy": "Always",
        "dataVolumeTemplates": [
            {
                "metadata": {"name": "web-rootdisk"},
                "spec": {
                    "source": {"http": {"url": "https://x.example.com/a.img"}},
                    "storage": {"resources": {"requests": {"storage": "10Gi"}}},
                },
            }
        ],
        "template": {
            "spec": {
                "domain": {
                    "cpu": {"cores": 2},
                    "memory": {"guest": "2Gi"},
                    "devices": {
                        "disks": [{"name": "rootdisk", "disk": {"bus": "virtio"}}],
                        "interfaces": [{"name": "default", "masquerade": {}}],
                    },
                },
                "networks": [{"name": "default", "pod": {}}],
                "volumes": [{"name": "rootdisk", "dataVolume": {"name": "web-rootdisk"}}],
            }
        },
    },
}
GONE: Any = object()


# Changes of the machine, what stands where, and the fields of all losses.
CASES: tuple[tuple[str, Json, Json, tuple[str, ...]], ...] = (
    ("running", {"spec.runStrategy": GONE, "spec.running": True}, {"VirtualMachine.powerState": "On"}, ()),
    ("not running", {"spec.runStrategy": GONE, "spec.running": False}, {"VirtualMachine.powerState": "Off"}, ()),
    ("Halted", {"spec.runStrategy": "Halted"}, {"VirtualMachine.powerState": "Off"}, ()),
    ("Manual", {"spec.runStrategy": "Manual"}, {"VirtualMachine.powerState": "Off"}, ("spec.runStrategy",)),
    ("RerunOnFailure", {"spec.runStrategy": "RerunOnFailure"}, {"VirtualMachine.powerState": "On"}, ("spec.runStrategy",)),
    ("the usual grace", {}, {"VirtualMachine.lifecycle.gracefulShutdownTimeout": "30s"}, ()),
    ("a grace", {f"{P}.terminationGracePeriodSeconds": 60}, {"VirtualMachine.lifecycle": None}, ()),
    (
        "a grace beyond every duration",
        {f"{P}.terminationGracePeriodSeconds": 9223372037},
        {"VirtualMachine.lifecycle.gracefulShutdownTimeout": "9223372036s"},
        (f"{P}.terminationGracePeriodSeconds",),
    ),
    ("cores", {}, {"VMClass.cpu": 2, "VMClass.performanceProfile.cpuHotAddEnabled": None}, ()),
    ("sockets", {f"{D}.cpu": {"sockets": 3}}, {"VMClass.cpu": 3, "VMClass.performanceProfile.cpuHotAddEnabled": True}, ()),
    (
        "fixed sockets",
        {f"{D}.cpu": {"sockets": 3, "maxSockets": 3}},
        {"VMClass.cpu": 3, "VMClass.performanceProfile.cpuHotAddEnabled": None},
        (f"{D}.cpu.sockets", f"{D}.cpu.maxSockets"),
    ),
    (
        "all three",
        {f"{D}.cpu": {"sockets": 2, "cores": 2, "threads": 2}},
        {"VMClass.cpu": 8},
        (f"{D}.cpu.sockets", f"{D}.cpu.cores", f"{D}.cpu.threads"),
    ),
    ("no processors", {f"{D}.cpu": GONE}, {"VMClass.cpu": 1}, ()),
    ("asked processors", {f"{D}.cpu": GONE, f"{D}.resources": {"requests": {"cpu": "2500m"}}}, {"VMClass.cpu": 3}, (f"{D}.resources",)),
    (
        "asked memory",
        {f"{D}.memory": GONE, f"{D}.resources": {"requests": {"memory": "3Gi"}}},
        {"VMClass.memory": "3Gi", "VMClass.resourceLimits": None},
        (),
    ),
    ("memory that may grow", {}, {"VMClass.performanceProfile.memoryHotAddEnabled": True}, ()),
    ("fixed memory", {f"{D}.memory.maxGuest": "2Gi"}, {"VMClass.performanceProfile": None}, ()),
    (
        "memory that may grow so far",
        {f"{D}.memory.maxGuest": "4Gi"},
        {"VMClass.performanceProfile.memoryHotAddEnabled": True},
        (f"{D}.memory.maxGuest",),
    ),
    ("huge pages", {f"{D}.memory.hugepages": {"pageSize": "2Mi"}}, {}, (f"{D}.memory.hugepages",)),
    (
        "limits",
        {f"{D}.resources": {"limits": {"memory": "4Gi"}, "requests": {"memory": "1Gi"}}},
        {"VMClass.resourceLimits": {"memoryLimit": "4Gi", "memoryReservation": "1Gi"}},
        (),
    ),
    ("a CPU model", {f"{D}.cpu.model": "host-passthrough"}, {"VMClass.performanceProfile.nestedVirtualization": True}, ()),
    ("another CPU model", {f"{D}.cpu.model": "Haswell"}, {}, (f"{D}.cpu.model",)),
    ("pinned processors", {f"{D}.cpu.dedicatedCpuPlacement": True}, {"VMClass.performanceProfile.latencySensitivity": "high"}, ()),
    (
        "EFI",
        {f"{D}.firmware": {"bootloader": {"efi": {}}}, f"{D}.features": {"smm": {"enabled": True}, "acpi": {}}},
        {"VMClass.firmware": "UEFI", "VMClass.securityProfile": {"secureBoot": True}},
        (),
    ),
    (
        "EFI without Secure Boot",
        {f"{D}.firmware": {"bootloader": {"efi": {"secureBoot": False}}}},
        {"VMClass.firmware": "UEFI", "VMClass.securityProfile": None},
        (),
    ),
    ("BIOS", {f"{D}.firmware": {"bootloader": {"bios": {}}, "serial": "x"}}, {"VMClass.firmware": None}, (f"{D}.firmware.serial",)),
    ("a TPM", {f"{D}.devices.tpm": {}}, {"VMClass.securityProfile": {"tpmEnabled": True, "tpmVersion": "2.0"}}, ()),
    ("no TPM", {f"{D}.devices.tpm": {"enabled": False}}, {"VMClass.securityProfile": None}, (f"{D}.devices.tpm",)),
    (
        "GPUs",
        {f"{D}.devices.gpus": [{"name": "gpu0", "deviceName": "l4"}]},
        {"VirtualMachine.resources.gpu": {"count": 1, "type": "l4"}},
        (),
    ),
    (
        "GPUs by vendor",
        {f"{D}.devices.gpus": [{"name": "a", "deviceName": "nvidia.com/L4"}]},
        {"VirtualMachine.resources": None},
        (f"{D}.devices.gpus",),
    ),
    ("the root disk's size", {}, {"VMClass.diskDefaults": {"size": "10Gi"}}, ()),
    (
        "the root disk's claim",
        {
            "spec.dataVolumeTemplates[0].spec.storage": GONE,
            "spec.dataVolumeTemplates[0].spec.pvc": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "fast",
                "resources": {"requests": {"storage": "9Gi"}},
            },
        },
        {"VMClass.diskDefaults": {"size": "9Gi", "storageClass": "fast"}},
        ("spec.dataVolumeTemplates[0].spec.storage.accessModes",),
    ),
    ("an allocated root disk", {"spec.dataVolumeTemplates[0].spec.preallocation": True}, {"VMClass.diskDefaults.type": "thick"}, ()),
    ("an image", {}, {"VMImage.source": {"http": {"url": "https://x.example.com/a.img"}}}, ()),
    (
        "an image with all about it",
        {
            "spec.dataVolumeTemplates[0].spec.source.http": {
                "url": "https://x/a",
                "checksum": "md5:" + "a" * 32,
                "extraHeaders": ["A: b", "broken"],
                "certConfigMap": "ca",
            }
        },
        {"VMImage.source.http": {"url": "https://x/a", "headers": {"A": "b"}, "checksum": "a" * 32, "checksumType": "md5"}},
        ("spec.dataVolumeTemplates[0].spec.source.http.certConfigMap", "spec.dataVolumeTemplates[0].spec.source.http.extraHeaders"),
    ),
    (
        "credentials",
        {"spec.dataVolumeTemplates[0].spec.source.http.secretRef": "login"},
        {
            "VMImage.source.http.authentication": {
                "basicAuth": {"secretRef": {"name": "login"}, "usernameKey": "accessKeyId", "passwordKey": "secretKey"}
            }
        },
        (),
    ),
    (
        "a registry",
        {"spec.dataVolumeTemplates[0].spec.source": {"registry": {"url": "docker://quay.io/a/b"}}},
        {"VMImage.source.registry.image": "quay.io/a/b:latest"},
        ("spec.dataVolumeTemplates[0].spec.source.registry.url",),
    ),
    (
        "a claim to copy",
        {"spec.dataVolumeTemplates[0].spec.source": {"pvc": {"name": "golden", "namespace": "images"}}},
        {"VMImage.source.dataVolume": {"name": "golden", "namespace": "images"}},
        (),
    ),
    (
        "a DataSource",
        {
            "spec.dataVolumeTemplates[0].spec.source": GONE,
            "spec.dataVolumeTemplates[0].spec.sourceRef": {"kind": "DataSource", "name": "fedora", "namespace": "os"},
        },
        {"VMImage.source": {}, "VirtualMachine.imageRef": {"name": "fedora", "namespace": "os"}},
        ("spec.dataVolumeTemplates[0].spec.sourceRef.kind",),
    ),
    (
        "an upload",
        {"spec.dataVolumeTemplates[0].spec.source": {"upload": {}}},
        {"VirtualMachine.importedDisk": {"diskID": "web-rootdisk"}, "VirtualMachine.imageRef": None},
        ("spec.dataVolumeTemplates",),
    ),
    (
        "a claim",
        {"spec.dataVolumeTemplates": GONE, f"{P}.volumes": [{"name": "rootdisk", "persistentVolumeClaim": {"claimName": "old"}}]},
        {"VirtualMachine.importedDisk": {"diskID": "old"}, "VMClass.diskDefaults": None},
        (),
    ),
    (
        "somebody's DataVolume",
        {"spec.dataVolumeTemplates": GONE, f"{P}.volumes": [{"name": "rootdisk", "dataVolume": {"name": "old"}}]},
        {"VirtualMachine.importedDisk": {"diskID": "old"}},
        (),
    ),
    (
        "a container disk",
        {"spec.dataVolumeTemplates": GONE, f"{P}.volumes": [{"name": "rootdisk", "containerDisk": {"image": "quay.io/c/fedora"}}]},
        {"VMImage.source.registry.image": "quay.io/c/fedora:latest"},
        (f"{P}.volumes[0].containerDisk",),
    ),
    (
        "no disk",
        {"spec.dataVolumeTemplates": GONE, f"{P}.volumes": GONE, f"{D}.devices.disks": GONE},
        {"VirtualMachine.imageRef": None, "VirtualMachine.importedDisk": None},
        (f"{D}.devices.disks",),
    ),
    ("another bus", {f"{D}.devices.disks[0].disk.bus": "sata"}, {}, (f"{D}.devices.disks[0].disk.bus",)),
    (
        "a host",
        {f"{P}.nodeSelector": {"kubernetes.io/hostname": "n1", "zone": "a"}},
        {"VirtualMachine.placement": {"host": "n1"}},
        (f"{P}.nodeSelector.zone",),
    ),
    ("a host name", {f"{P}.hostname": "db"}, {"VirtualMachine.metaData.cloudInit.inline": "local-hostname: db\n"}, ()),
    ("the architecture", {f"{P}.architecture": "arm64"}, {"VMImage.metadata.architecture": "arm64"}, ()),
    (
        "labels",
        {"metadata.labels": {"app": "web"}, "spec.template.metadata": {"labels": {"app": "web", "tier": "x"}}},
        {},
        ("spec.template.metadata.labels.tier",),
    ),
    ("a preference", {"spec.preference": {"name": "linux"}}, {}, ("spec.preference",)),
    ("no card", {f"{D}.devices.interfaces": GONE, f"{P}.networks": GONE}, {"VirtualMachine.networks": None}, ()),
    (
        "a MAC address",
        {f"{D}.devices.interfaces[0].macAddress": "02:00:00:00:00:0a"},
        {"VirtualMachine.networks.0.macAddress": "02:00:00:00:00:0a"},
        (),
    ),
    ("ports", {f"{D}.devices.interfaces[0].ports": [{"port": 80}]}, {}, (f"{D}.devices.interfaces[0].ports",)),
    (
        "a model",
        {f"{D}.devices.interfaces[0].model": "e1000"},
        {
            "VMNetworkAttachment.network": {"type": "nat", "libvirt": {"model": "e1000"}},
            "VirtualMachine.networks.0.networkRef.name": "pod-network-e1000",
        },
        (),
    ),
    (
        "a model of nobody",
        {f"{D}.devices.interfaces[0].model": "igb"},
        {"VMNetworkAttachment.network": {"type": "nat"}},
        (f"{D}.devices.interfaces[0].model",),
    ),
    ("another binding", {f"{D}.devices.interfaces[0]": {"name": "default", "bridge": {}}}, {}, (f"{D}.devices.interfaces[0].bridge",)),
    (
        "several queues",
        {f"{D}.devices.networkInterfaceMultiqueue": True, f"{D}.cpu.cores": 4},
        {"VMNetworkAttachment.network": {"type": "nat", "libvirt": {"driver": {"queues": 4}}}},
        (),
    ),
    (
        "a card with capitals",
        {f"{D}.devices.interfaces[0].name": "Net_1", f"{P}.networks[0].name": "Net_1"},
        {"VirtualMachine.networks.0.name": "net-1"},
        (f"{P}.networks[0].name",),
    ),
    ("a watchdog", {f"{D}.devices.watchdog": {"name": "w", "i6300esb": {}}}, {}, (f"{D}.devices.watchdog",)),
)
