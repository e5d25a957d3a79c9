"""Faults of VirtRigaud's objects at real hypervisors: what is made, what `paddock why` is asked about, and the answer that is right.

A row is one fault at one type of Provider. `objects` are the manifests that bring it about; `{web}` and the like in them stand for values
of the run. What manifests cannot do (a volume that somebody deletes) is an action of the run, under the row's name.
"""

import io
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from paddock.base.errors import Transient
from paddock.cli.commands import why
from paddock.cli.console import Console

Data = dict[str, Any]
API = "infra.virtrigaud.io/v1beta1"
BASE = f"/apis/{API}/namespaces/default"
LIBVIRT, QEMU, VSPHERE, PROXMOX, UPSTREAM = "libvirt", "qemu", "vsphere", "proxmox", "upstream"
# The ordinary Provider of each type.
LAB: Mapping[str, str] = {LIBVIRT: "lab", QEMU: "here", VSPHERE: "vcenter", PROXMOX: "cluster", UPSTREAM: "theirs"}
# Answers that say that something is still under way or slow, and a remark on what nothing has been tried with: they are no answer yet.
_UNDER_WAY = frozenset(("provider-working", "machine-dependency", "front-working", "provider-plaintext", "provider-slow", "starting"))
# As in `ObjectPlace`, for kinds that KubeVirt has, too.
_GROUPS: Mapping[str, str] = {API.partition("/")[0]: "VirtRigaud "}


@dataclass(frozen=True)
class RealFault:
    """`ask` is about what; `cause` is the rule of the first finding, and `of` the object that it is about (`Kind name`)."""

    name: str
    type: str
    cause: str
    of: str
    ask: str
    objects: tuple[Data, ...] = ()
    # words of the first answer's cause or fix
    says: str = ""
    # the cause a moment later, when the machine has been started again
    later: str = ""
    # the object that says it, too, until its Provider has been looked at
    earlier: str = ""

    def manifests(self, values: Mapping[str, object]) -> list[Data]:
        """The objects of a run."""
        return [_filled(each, values) for each in self.objects]


def _filled(value: Any, values: Mapping[str, object]) -> Any:
    if isinstance(value, dict):
        return {name: _filled(each, values) for name, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, values) for each in value]
    return value.format(**values) if isinstance(value, str) else value


@dataclass(frozen=True)
class Answer:
    """What `paddock why` said first: about what it is, and what it tells to do."""

    state: str
    rule: str = ""
    of: str = ""
    cause: str = ""
    fix: str = ""

    def is_right(self, fault: RealFault) -> bool:
        """Return whether it names the fault's cause, its object, and what to do there."""
        named = self.rule in (fault.cause, fault.later or fault.cause) and self.of in (fault.of, fault.earlier or fault.of)
        return named and fault.says in f"{self.cause} {self.fix}" and bool(self.fix or fault.says)


def asked(kubeconfig: Path, what: str, seconds: float = 600.0) -> Answer:
    """Ask the command; again where the server is too busy to answer."""
    end = time.monotonic() + seconds
    while True:
        out, err = io.BytesIO(), io.BytesIO()
        try:
            why.run([what, "--kubeconfig", str(kubeconfig), "-o", "json"], Console(out, err))
        except Transient:
            assert time.monotonic() < end
        else:
            return _read(out.getvalue())


def _read(output: bytes) -> Answer:
    told = json.loads(output)
    if not told["findings"]:
        return Answer(told["state"], cause=told["says"])
    first = told["findings"][0]
    place = f"{_GROUPS.get(first['object']['group'], '')}{first['object']['kind']} {first['object']['name']}"
    return Answer(told["state"], first["rule"], place, first["cause"], first["fix"])


def first_answer(kubeconfig: Path, what: str, seconds: float = 600.0) -> Answer:
    """Ask until the answer is one: not that all is well, and not that it is under way."""
    end = time.monotonic() + seconds
    while True:
        answer = asked(kubeconfig, what)
        if (answer.rule and answer.rule not in _UNDER_WAY and answer.state != "good") or time.monotonic() > end:
            return answer
        time.sleep(0.5)


# --- manifests ------------------------------------------------------------------------------------------------------------------


def made(kind: str, name: str, **spec: Any) -> Data:
    """An object of VirtRigaud's."""
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


def provider(name: str, type: str, endpoint: str, secret: str = "lab", **spec: Any) -> Data:
    """A Provider whose program is a child of the server."""
    given = {"credentialSecretRef": {"name": secret}, "runtime": {"image": "none:1"}, **spec}
    return made("Provider", name, type=type, endpoint=endpoint, **given)


def machine(name: str, at: str, image: str | None = "boot", **spec: Any) -> Data:
    """A machine at a Provider."""
    source = {"imageRef": {"name": image}} if image else {}
    return made("VirtualMachine", name, **{"providerRef": {"name": at}, "classRef": {"name": "small"}, **source, **spec})


def path_of(body: Data) -> str:
    """Where objects of a manifest's kind are made."""
    kind, group = str(body["kind"]), str(body["apiVersion"])
    plurals = {"Secret": "secrets", "VMClass": "vmclasses", "VMPlacementPolicy": "vmplacementpolicies"}
    where = f"/api/{group}" if "/" not in group else f"/apis/{group}"
    return f"{where}/namespaces/default/{plurals.get(kind, f'{kind.lower()}s')}"


SSH = "qemu+ssh://127.0.0.1:{port}/system?socket={socket}"
# What rows name.
COMMON: tuple[Data, ...] = (
    provider("lab", LIBVIRT, SSH),
    provider("here", QEMU, "qemu:///system", "none"),
    made("VMClass", "small", cpu=1, memory="64Mi"),
    made(
        "VMImage",
        "boot",
        source={
            "libvirt": {"path": "{pool}/boot.raw", "format": "raw"},
            "http": {"url": "{web}/boot.raw"},
            "vsphere": {"templateName": "boot"},
        },
    ),
)


# --- rows -----------------------------------------------------------------------------------------------------------------------


def _vm(name: str) -> str:
    return f"virtualmachine.infra.virtrigaud.io/{name}"


def _of(kind: str, name: str) -> str:
    return f"VirtRigaud {kind} {name}"


def _machines(
    name: str, type: str, cause: str, of: str = "", *others: Data, says: str = "", image: str | None = "boot", **spec: Any
) -> RealFault:
    """A fault of a machine of its own."""
    full_name = f"{name}-{type}"
    found = machine(full_name, spec.pop("at", LAB[type]), image, **spec)
    return RealFault(full_name, type, cause, of or _of("VirtualMachine", full_name), _vm(full_name), (*others, found), says)


def _providers(name: str, type: str, cause: str, endpoint: str = SSH, secret: str = "", of: str = "") -> RealFault:
    """A fault of a Provider, asked about at a machine of its own."""
    full_name = f"{name}-{type}"
    bodies = (provider(full_name, type, endpoint, secret or LAB[type]), machine(full_name, full_name))
    return RealFault(full_name, type, cause, of or _of("Provider", full_name), _vm(full_name), bodies)


def _images(name: str, type: str, cause: str, url: str) -> RealFault:
    """A fault of an image, asked about at a machine that needs it."""
    full_name = f"{name}-{type}"
    source = {"libvirt": {"url": url, "format": "qcow2"}} if type == LIBVIRT else {"http": {"url": url}}
    bodies = (made("VMImage", full_name, source=source), machine(full_name, LAB[type], full_name))
    return RealFault(full_name, type, cause, _of("VMImage", full_name), _vm(full_name), bodies)


def _every_image(name: str, cause: str, url: str) -> Iterator[RealFault]:
    for kind in (LIBVIRT, QEMU):
        yield _images(name, kind, cause, url)


def _wrong_sum(type: str) -> RealFault:
    source = {"url": "{web}/boot.raw", "format": "raw", "checksum": "0" * 64}
    full_name = f"checksum-{type}"
    block = {"libvirt": source} if type == LIBVIRT else {"http": {"url": source["url"], "checksum": source["checksum"]}}
    image = made("VMImage", full_name, source=block, prepare={"validateChecksum": True})
    return RealFault(
        full_name, type, "image-checksum", _of("VMImage", full_name), _vm(full_name), (image, machine(full_name, LAB[type], full_name))
    )


def _shared() -> RealFault:
    """An image that fails otherwise at another Provider, which needs it, too."""
    source = {"http": {"url": "{web}/404.qcow2"}, "libvirt": {"url": "http://nowhere.invalid/tiny.qcow2", "format": "qcow2"}}
    bodies = (
        made("VMImage", "shared", source=source),
        machine("shared-libvirt", "lab", "shared"),
        machine("shared-qemu", "here", "shared"),
    )
    return RealFault("shared-qemu", QEMU, "image-missing", _of("VMImage", "shared"), _vm("shared-qemu"), bodies)


def _classes(name: str, type: str, cause: str, says: str = "", **spec: Any) -> RealFault:
    full_name = f"{name}-{type}"
    body = made("VMClass", full_name, **{"cpu": 1, "memory": "64Mi", **spec})
    return _machines(name, type, cause, "", body, says=says, classRef={"name": full_name})


def _huge() -> RealFault:
    body = made("VMClass", "huge-qemu", cpu=1, memory="512Gi")
    found = machine("huge-qemu", "here", classRef={"name": "huge-qemu"})
    return RealFault("huge-qemu", QEMU, "no-memory", "VirtualMachineInstance huge-qemu", _vm("huge-qemu"), (body, found), "VMClass")


def _operation(kind: str, name: str, type: str, cause: str, of: str = "", says: str = "", **spec: Any) -> RealFault:
    """A fault of a snapshot, a clone or a migration."""
    full_name = f"{name}-{type}"
    ask = f"{kind.lower()}.infra.virtrigaud.io/{full_name}"
    return RealFault(full_name, type, cause, of or _of(kind, full_name), ask, (made(kind, full_name, **spec),), says)


def _moves(name: str, type: str, cause: str, source: str, to: str) -> RealFault:
    target = {"name": f"{name}-moved", "providerRef": {"name": to}, "classRef": {"name": "small"}}
    return _operation("VMMigration", name, type, cause, source={"vmRef": {"name": source}}, target=target, storage={"type": "pvc"})


# Machines that run, or could, and that something happens to.
STANDING: tuple[Data, ...] = (
    machine("data-gone-libvirt", "lab", powerState="Off", disks=[{"name": "data", "sizeGiB": 1}]),
    machine("destroyed-libvirt", "lab", powerState="On"),
    machine("killed-qemu", "here", powerState="On"),
    machine("poolless-libvirt", "lab", powerState="Off", placement={"datastore": "leaving"}),
    machine("still-qemu", "here", powerState="Off"),
)

ON_HOST: tuple[RealFault, ...] = (
    # objects that are named
    _machines("no-provider", LIBVIRT, "provider-missing", _of("Provider", "gone"), at="gone"),
    _machines("no-class", LIBVIRT, "vmclass-missing", _of("VMClass", "gone"), classRef={"name": "gone"}),
    _machines("no-image", LIBVIRT, "vmimage-missing", _of("VMImage", "gone"), image="gone"),
    _machines(
        "no-network",
        LIBVIRT,
        "vmnetwork-missing",
        _of("VMNetworkAttachment", "gone"),
        networks=[{"name": "a", "networkRef": {"name": "gone"}}],
    ),
    _machines("no-document", LIBVIRT, "secret-missing", "Secret seed", userData={"cloudInit": {"secretRef": {"name": "seed"}}}),
    _providers("no-credentials", LIBVIRT, "secret-missing", secret="gone", of="Secret gone"),
    _machines("no-policy", LIBVIRT, "placementpolicy-missing", _of("VMPlacementPolicy", "gone"), placementRef={"name": "gone"}),
    _machines("no-source", LIBVIRT, "machine-refused", image=None),
    _operation(
        "VMClone",
        "no-machine",
        LIBVIRT,
        "machine-missing",
        _of("VirtualMachine", "gone"),
        source={"vmRef": {"name": "gone"}},
        target={"name": "t"},
    ),
    _operation("VMSnapshot", "of-no-machine", LIBVIRT, "machine-missing", _of("VirtualMachine", "gone"), vmRef={"name": "gone"}),
    _providers("no-driver", "firecracker", "provider-driver-missing", "https://lab", "lab"),
    # the way to the hypervisor
    _providers("wrong-key", LIBVIRT, "provider-credentials", secret="stranger"),
    replace(_providers("host-key", LIBVIRT, "provider-host-key", secret="mistrusted"), says="known_hosts"),
    replace(_providers("unknown-host", LIBVIRT, "provider-host-key", secret="unknowing"), says="known_hosts"),
    _providers("closed-port", LIBVIRT, "hypervisor-unreachable", "qemu+ssh://127.0.0.1:1/system"),
    _providers("no-name", LIBVIRT, "provider-address-unknown", "qemu+ssh://nowhere.invalid/system"),
    _providers("no-nc", LIBVIRT, "hypervisor-program-missing", "qemu+ssh://127.0.0.1:{bare}/system?socket={socket}"),
    # images
    *_every_image("refused", "image-server-unreachable", "http://127.0.0.1:1/tiny.qcow2"),
    *_every_image("nameless", "image-server-unknown", "http://nowhere.invalid/tiny.qcow2"),
    *_every_image("failing", "image-server-failing", "{web}/503.qcow2"),
    *_every_image("absent", "image-missing", "{web}/404.qcow2"),
    *_every_image("page", "image-not-an-image", "{web}/page.qcow2"),
    _wrong_sum(LIBVIRT),
    _wrong_sum(QEMU),
    _shared(),
    _machines(
        "no-file",
        LIBVIRT,
        "provider-image-missing",
        "",
        made("VMImage", "no-file", source={"libvirt": {"path": "{pool}/gone.qcow2"}}),
        image="no-file",
    ),
    # creation
    _machines(
        "no-bridge",
        LIBVIRT,
        "provider-network-missing",
        "",
        made("VMNetworkAttachment", "typo", network={"libvirt": {"networkName": "nope"}}),
        networks=[{"name": "a", "networkRef": {"name": "typo"}}],
        says="VMNetworkAttachment",
    ),
    _machines("no-pool", LIBVIRT, "provider-pool-missing", placement={"datastore": "nope"}, says="placement.datastore"),
    _machines(
        "no-disk-pool", LIBVIRT, "provider-pool-missing", disks=[{"name": "d", "sizeGiB": 1, "storageClass": "nope"}], says="storageClass"
    ),
    _machines("no-disk", LIBVIRT, "provider-volume-missing", image=None, importedDisk={"diskID": "nope"}, says="importedDisk"),
    _machines("full", LIBVIRT, "provider-storage-full", placement={"datastore": "full"}),
    _machines("taken", LIBVIRT, "provider-conflict"),
    _machines("taken", QEMU, "provider-conflict"),
    _classes("huge", LIBVIRT, "provider-capacity", memory="512Gi"),
    _huge(),
    _machines("gpu", LIBVIRT, "provider-unable", resources={"gpu": {"count": 1}}),
    _machines("gpu", QEMU, "provider-limited", resources={"gpu": {"count": 1}}),
    _classes("encrypted", LIBVIRT, "provider-unable", securityProfile={"encryptionPolicy": {"enabled": True, "requireEncryption": True}}),
    _machines(
        "no-place",
        LIBVIRT,
        "machine-unplaced",
        "",
        made("VMPlacementPolicy", "nowhere", hard={"hosts": ["nope"]}),
        placementRef={"name": "nowhere"},
    ),
    # machines that exist
    RealFault(
        "data-gone-libvirt",
        LIBVIRT,
        "provider-volume-missing",
        _of("VirtualMachine", "data-gone-libvirt"),
        _vm("data-gone-libvirt"),
        says="data-gone-libvirt-data.qcow2",
    ),
    # Nobody has seen it yet: the answer says how old its word is.
    RealFault("destroyed-libvirt", LIBVIRT, "", "", _vm("destroyed-libvirt"), says="its Provider's word, up to 2 minutes old"),
    RealFault(
        "killed-qemu",
        QEMU,
        "qemu-killed",
        "VirtualMachineInstance killed-qemu",
        _vm("killed-qemu"),
        says="killed from outside",
        later="crashed-lately",
        # while its next instance is on the way
        earlier="VirtualMachine killed-qemu",
    ),
    _operation("VMSnapshot", "memory", QEMU, "provider-unable", vmRef={"name": "still-qemu"}, snapshotConfig={"includeMemory": True}),
    _operation(
        "VMClone",
        "linked",
        QEMU,
        "clone-unsupported",
        source={"vmRef": {"name": "still-qemu"}},
        target={"name": "l"},
        options={"type": "LinkedClone"},
    ),
    _operation("VMClone", "onto", QEMU, "clone-name-taken", source={"vmRef": {"name": "still-qemu"}}, target={"name": "killed-qemu"}),
    RealFault(
        "foreign-qemu",
        QEMU,
        "machine-refused",
        _of("VirtualMachine", "reverting-qemu"),
        _vm("reverting-qemu"),
        (
            made("VMSnapshot", "others", vmRef={"name": "still-qemu"}),
            machine("reverting-qemu", "here", powerState="Off", snapshot={"revertToRef": {"name": "others"}}),
        ),
    ),
    replace(_moves("unreadable", QEMU, "migration-storage", "still-qemu", "lab"), says="read and write the storage"),
    _moves("outside", LIBVIRT, "provider-pool-missing", "poolless-libvirt", "here"),
)

_TEMPLATE = made("VMImage", "no-template", source={"vsphere": {"templateName": "nope"}})
ON_REFERENCE: tuple[RealFault, ...] = (
    _providers("wrong-password", VSPHERE, "provider-credentials", "{vcenter}", "stranger"),
    _providers("wrong-authority", VSPHERE, "provider-certificate", "{vcenter}", "mistrusted"),
    _machines("no-template", VSPHERE, "provider-image-missing", "", _TEMPLATE, says="VMImage", image="no-template"),
    # The program is VirtRigaud's own, and sends no codes.
    RealFault(
        "no-socket-upstream",
        UPSTREAM,
        "hypervisor-unreachable",
        _of("Provider", "theirs"),
        _vm("no-socket-upstream"),
        (machine("no-socket-upstream", "theirs"),),
        earlier=_of("VirtualMachine", "no-socket-upstream"),
    ),
)
