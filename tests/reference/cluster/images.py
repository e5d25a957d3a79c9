"""The images of the cluster: pause, one of KubeVirt under all the names of its components, and those of CDI.

No registry is asked. The root of Debian that the node runs in is the lower layer of KubeVirt's and CDI's images, too; the upper one has
their programs and what their own images lay beside them.
"""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.reference.cluster import archive
from tests.reference.cluster.archive import File, Image, Layer

REGISTRY = "registry.invalid"
PAUSE = f"{REGISTRY}/pause:1"
# virt-handler works on the node as root; the pods of the others insist on a user that is not.
_COMPONENTS: Sequence[tuple[Sequence[str], Mapping[str, Any]]] = (
    (("virt-handler",), {"User": "0"}),
    (("virt-operator", "virt-api", "virt-controller", "virt-launcher", "virt-exportproxy"), {"User": "107"}),
    # Its pod names no command.
    (("virt-exportserver",), {"User": "107", "Entrypoint": ["/usr/bin/virt-exportserver"], "Cmd": []}),
)
_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_OF_CDI: Mapping[str, Any] = {"Env": [_PATH], "User": "1001", "Cmd": []}
_CDI: Mapping[str, Sequence[str]] = {
    "cdi-operator": ["/usr/bin/cdi-operator"],
    "cdi-cloner": ["/usr/bin/cloner_startup.sh"],
    **{
        f"cdi-{name}": [f"/usr/bin/cdi-{name}", "-alsologtostderr"]
        for name in ("controller", "apiserver", "uploadproxy", "importer", "uploadserver")
    },
}
_QEMU = 107
# qemu is KubeVirt's; libvirt of Debian does not start without the user that it knows.
_PASSWD = f"""root:x:0:0:root:/root:/bin/bash
qemu:x:{_QEMU}:{_QEMU}:qemu:/home/qemu:/bin/bash
libvirt-qemu:x:64055:{_QEMU}:libvirt:/var/lib/libvirt:/bin/sh
nobody:x:65534:65534:nobody:/:/bin/sh
"""
_GROUP = f"root:x:0:\ntty:x:5:\nkvm:x:104:\nqemu:x:{_QEMU}:\nlibvirt-qemu:x:64055:\nlibvirt:x:106:\nnogroup:x:65534:\n"
# cap_net_bind_service, permitted and effective, as the kernel stores it: version 2, four words follow.
_BIND = {"security.capability": "\x01\x00\x00\x02\x00\x04\x00\x00" + "\x00" * 12}
# Debian builds libvirt's one daemon and not the one for QEMU alone. It is the same driver behind a socket of another name; KubeVirt
# looks for a process that is called virtqemud, and for its socket.
_VIRTQEMUD = """#!/bin/bash
mkdir -p /run/libvirt
ln -sfn libvirt-sock /run/libvirt/virtqemud-sock
exec /usr/lib/kubevirt/virtqemud "$@"
"""
_FIRMWARE = {
    "OVMF_CODE.fd": "CODE_4M",
    "OVMF_VARS.fd": "VARS_4M",
    "OVMF_CODE.secboot.fd": "CODE_4M.secboot",
    "OVMF_VARS.secboot.fd": "VARS_4M.ms",
}
# The kernel lists kvm here and cannot do it, so KubeVirt's script gets the name of a device that does not exist.
_LABELLER = """#!/bin/bash
export HYPERVISOR_DEVICE=no-kvm PREFERRED_VIRTTYPE=qemu
exec bash /usr/lib/kubevirt/node-labeller.sh "$@"
"""


def write(path: Path, base: Layer, programs: Mapping[str, Path], sources: Path, version: str) -> None:
    """Write the archive with the image of KubeVirt; `sources` is the folder of KubeVirt's module."""
    scratch = path.with_suffix(".d")
    scratch.mkdir(exist_ok=True)
    upper = archive.layer(scratch / "kubevirt.tar", _files(programs, sources, _compiled(scratch, sources)))
    images = [
        Image(
            tuple(f"{REGISTRY}/{component}:{version}" for component in components),
            (base, upper),
            {"Env": [_PATH], "Cmd": ["/bin/sh"], **settings},
        )
        for components, settings in _COMPONENTS
    ]
    archive.write(path, images)


def write_cdi(path: Path, base: Layer, programs: Mapping[str, Path], version: str) -> None:
    """Write the archive with the images of CDI, which differ in the program that they start."""
    upper = archive.layer(path.with_suffix(".layer"), {f"usr/bin/{name}": File(file, 0o755) for name, file in programs.items()})
    images = [Image((f"{REGISTRY}/{name}:{version}",), (base, upper), {**_OF_CDI, "Entrypoint": words}) for name, words in _CDI.items()]
    archive.write(path, images)
    upper.path.unlink()


def pause(path: Path, program: Path) -> None:
    """Write the archive with the image of every pod's first container."""
    layer = archive.layer(path.with_suffix(".layer"), {"pause": File(program, 0o755)})
    archive.write(path, [Image((PAUSE,), (layer,), {"Entrypoint": ["/pause"]})])
    layer.path.unlink()


def disk(path: Path, name: str, image: Path) -> None:
    """Write the archive of a container disk: an image with the disk of a machine."""
    layer = archive.layer(path.with_suffix(".layer"), {"disk/": File("", 0o755), "disk/disk.img": File(image, 0o444, _QEMU)})
    archive.write(path, [Image((name,), (layer,))])
    layer.path.unlink()


def _compiled(scratch: Path, sources: Path) -> Path:
    """Return container-disk, which runs in images that have nothing else; KubeVirt writes it in C."""
    program = scratch / "container-disk"
    source = sources / "cmd/container-disk-v2alpha/main.c"
    subprocess.run(["gcc", "-static", "-O2", "-o", str(program), str(source)], check=True, capture_output=True)
    return program


def _files(programs: Mapping[str, Path], sources: Path, container_disk: Path) -> dict[str, File]:
    launcher = sources / "cmd/virt-launcher"
    return {
        **{f"usr/bin/{name}": File(path, 0o755) for name, path in programs.items() if name.startswith(("virt-", "libvirt-"))},
        "usr/bin/virt-launcher-monitor": File(programs["virt-launcher-monitor"], 0o755, attributes=_BIND),
        "usr/bin/container-disk": File(container_disk, 0o755),
        "usr/bin/node-labeller.sh": File(_LABELLER, 0o755),
        "usr/lib/kubevirt/": File("", 0o755),
        "usr/lib/kubevirt/node-labeller.sh": File(launcher / "node-labeller/node-labeller.sh", 0o755),
        "usr/lib/kubevirt/virtqemud": File("/usr/sbin/libvirtd", link=True),
        "usr/sbin/virtqemud": File(_VIRTQEMUD, 0o755),
        "usr/libexec/qemu-kvm": File("/usr/bin/qemu-system-x86_64", link=True),
        # virt-launcher puts a link to its client in place of the hook.
        "etc/libvirt/hooks/": File("", 0o755, _QEMU),
        "etc/libvirt/hooks/qemu": File(launcher / "qemu", 0o755, _QEMU),
        "etc/libvirt/qemu.conf": File(launcher / "qemu.conf"),
        "etc/libvirt/virtqemud.conf": File(launcher / "virtqemud.conf"),
        # Debian has the firmware elsewhere, and under other names.
        **{f"usr/share/edk2/ovmf/{ours}": File(f"/usr/share/OVMF/OVMF_{theirs}.fd", link=True) for ours, theirs in _FIRMWARE.items()},
        "etc/passwd": File(_PASSWD),
        "etc/group": File(_GROUP),
        # virt-handler follows it from outside of the container, so it must not lead to the root.
        "var/run": File("../run", link=True),
        "home/qemu/": File("", 0o755, _QEMU),
    }
