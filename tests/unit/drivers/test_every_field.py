"""No field of VirtRigaud's machines, classes, images and networks is accepted in silence, at any type of Provider.

For every field there is a machine for which another value makes another outcome: the driver makes something else of the request, the
machine's condition names the field, or somebody refuses it. What controllers carry out themselves, and what is only kept, stands in the
tables of `plan.virtrigaud.unread`, with the reason.
"""

import copy
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import pytest
from msgspec import structs

from paddock.base.errors import PaddockError
from paddock.contract import payloads
from paddock.contract.specs import VMImageSpec
from paddock.dialects.virtrigaud.kinds.vmclass import VMClassSpec
from paddock.dialects.virtrigaud.kinds.vmimage import ProviderImage
from paddock.dialects.virtrigaud.plan import hardware, imagecredentials, preparation, references, requests, support, unread
from paddock.dialects.virtrigaud.plan.refusals import Refusal
from paddock.kubernetes import admission, catalog
from paddock.kubernetes.core.secret import Secret, decoded
from paddock.kubernetes.meta.wire import from_data
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.schema.finding import Path, format_path
from tests.kit.declarations import documents
from tests.kit.declarations.documents import NOTHING, Place
from tests.unit.dialects.test_every_field import SETTINGS, candidates, is_field, with_value
from tests.unit.drivers.makings import SECRET, Made, Making, makings

pytest.importorskip("libvirt", reason="libvirt-python is not installed")
pytest.importorskip("pyVmomi", reason="pyVmomi is not installed")

Json = dict[str, Any]
GROUP = "infra.virtrigaud.io"
KINDS = ("VirtualMachine", "VMClass", "VMImage", "VMNetworkAttachment")
TYPES = ("fake", "upstream", "qemu", "libvirt", "proxmox", "vsphere", "firecracker")
# The Provider's type where the driver is none.
PROVIDER = {"fake": "libvirt", "upstream": "libvirt"}
BLOCKS = ("vsphere", "libvirt", "proxmox")

SUM = {"checksum": "a" * 64}
LOGIN = {"authentication": {"basicAuth": {"secretRef": {"name": "example"}}}}
CERTIFICATE = {"authentication": {"clientCert": {"secretRef": {"name": "example"}}}}
TOKEN = {"authentication": {"bearer": {"secretRef": {"name": "example"}}}}
URL = "https://images.example/tiny.qcow2"
TRUNK = {"vlan": {"type": "trunk", "trunkVlanIDs": [1, 2]}}
PRIVATE = {"vlan": {"type": "pvlan", "primaryVlanID": 1, "secondaryVlanID": 2}}
SHAPED = {"trafficShaping": {"enabled": True, "averageBandwidth": 100000}}
STATIC = {
    "type": "Static",
    "staticConfig": {"address": "10.0.0.5/24", "gateway": "10.0.0.1", "routes": [{"destination": "10.1.0.0/16", "gateway": "10.0.0.2"}]},
}
IMAGES: Mapping[str, list[Json]] = {
    "fake": [{"libvirt": {"url": URL}}, {"http": {"url": URL}}, {"registry": {"image": "quay.io/a/b:1"}}],
    "upstream": [{"libvirt": {"url": URL}}, {"http": {"url": URL}}, {"registry": {"image": "quay.io/a/b:1"}}],
    "libvirt": [{"libvirt": {"url": URL}}, {"http": {"url": URL}}, {"registry": {"image": "quay.io/a/b:1"}}],
    "qemu": [{"http": {"url": URL}}, {"registry": {"image": "quay.io/a/b:1"}}, {"dataVolume": {"name": "disk"}}, {"libvirt": {"url": URL}}],
    "proxmox": [
        {"proxmox": {"templateID": 9000}},
        {"http": {"url": URL}},
        {"proxmox": {"templateName": "conformance"}},
        {"proxmox": {"templateID": 9000, "fullClone": True}},
    ],
    "vsphere": [{"vsphere": {"templateName": "t"}}, {"vsphere": {"ovaURL": "https://images.example/a.ova"}}, {"http": {"url": URL}}],
    "firecracker": [{"http": {"url": URL}}],
}
for _images in IMAGES.values():
    _images += [{name: {**block, **SUM}} for each in tuple(_images) for name, block in each.items() if "url" in block or "ovaURL" in block]
    _images += [{"http": {"url": URL, **each}} for each in (LOGIN, TOKEN, CERTIFICATE) if any("http" in every for every in _images)]
    _images += [{"registry": {**every["registry"], "pullSecretRef": {"name": "example"}}} for every in _images if "registry" in every]
NETWORKS: Mapping[str, list[Json]] = {
    "vsphere": [{"vsphere": {"portgroup": "pg"}}, {"vsphere": TRUNK}, {"vsphere": PRIVATE}, {"vsphere": SHAPED}],
    "proxmox": [{"proxmox": {"bridge": "vmbr0"}}],
    "qemu": [
        {"libvirt": {"bridge": {"name": "br0"}}},
        {"libvirt": {"networkName": "lan"}},
        {"proxmox": {"bridge": "vmbr0", "vlanTag": 3}},
        {"vsphere": {"portgroup": "pg"}},
        {"vsphere": TRUNK},
        {"vsphere": PRIVATE},
        {"vsphere": SHAPED},
    ],
    "firecracker": [{"libvirt": {"bridge": {"name": "br0"}}}, {"libvirt": {"networkName": "br0"}}],
}
LIBVIRT_NETWORKS: list[Json] = [{"libvirt": {"bridge": {"name": "br0"}}}, {"libvirt": {"networkName": "default"}}]
# An image at the hypervisor, for those that take no other; what is prepared stands for the rest.
PREPARED = {"libvirt": "/default-pool/image.qcow2", "vsphere": "t", "qemu": "image", "proxmox": "9000"}


def document(kind: str, spec: Json) -> Json:
    """An object of a kind."""
    return {"apiVersion": f"{GROUP}/v1beta1", "kind": kind, "metadata": {"name": "example", "namespace": "default"}, "spec": spec}


def bases(kind: str, type: str) -> list[Json]:
    """Documents of a kind that a driver can make something of."""
    if kind == "VirtualMachine":
        ref = {"providerRef": {"name": "lab"}, "classRef": {"name": "example"}}
        plain = {**ref, "imageRef": {"name": "example"}}
        card = {"name": "lan", "networkRef": {"name": "example"}}
        wired, addressed = ({**plain, "networks": [each]} for each in (card, {**card, "ipAddress": "10.0.0.9"}))
        disks = {**plain, "disks": [{"name": "data", "sizeGiB": 1}]}
        path = {"qemu": "disk", "vsphere": "[store] a/b.vmdk", "libvirt": "/default-pool/image.qcow2", "firecracker": "/images/a.qcow2"}
        imported = {**ref, "importedDisk": {"diskID": "disk", "path": path.get(type, "local:import/a.qcow2")}}
        graphics = {**plain, "resources": {"gpu": {"count": 1, "type": "a"}}}
        return [document(kind, spec) for spec in (wired, addressed, disks, plain, imported, graphics)]
    if kind == "VMClass":
        spec = {"cpu": 1, "memory": "1Gi", "diskDefaults": {"size": "20Gi"}}
        return [document(kind, spec), document(kind, {**spec, "firmware": "UEFI", "securityProfile": {"tpmEnabled": True}})]
    if kind == "VMImage":
        return [document(kind, {"source": source}) for source in IMAGES[type]]
    found = NETWORKS.get(type, LIBVIRT_NETWORKS)
    plain_networks = [document(kind, {"network": network}) for network in found]
    network = found[0]
    firewall = {"enabled": True, "rules": [{"name": "a", "action": "ACCEPT", "direction": "in"}]}
    more: list[Json] = [{"ipAllocation": STATIC}, {"ipAllocation": {"type": "Pool"}}, {"security": {"firewall": firewall}}]
    return [*plain_networks, *(document(kind, {"network": network, **each}) for each in more)]


# Values that mean something at some hypervisor.
MORE = ("EFI", 1500, 9000, "10.0.0.53")
# What shows elsewhere: a name for messages alone, and a format that the stage's storage cannot have (proxmox/test_fieldeffects.py).
ELSEWHERE: Mapping[str, tuple[str, ...]] = {"proxmox": ("spec.networks[].name", "spec.source.proxmox.format")}
# Members that say little of what is below them.
GENERAL = (*BLOCKS, "source", "http", "network", "networks", "disks", "prepare", "name")


class Outcome(NamedTuple):
    """What a driver makes, and the texts that name what it does not."""

    made: str
    texts: tuple[str, ...] = ()

    def names(self, path: Path) -> bool:
        """Return whether a text names a field, or what it stands in."""
        parts = [each for each in path if isinstance(each, str)][1:]
        return any(_is_about(text, parts) for text in self.texts)


def _is_about(text: str, parts: list[str]) -> bool:
    if text.startswith("refused: "):
        return any(re.search(rf"\b{re.escape(part)}", text, re.IGNORECASE) for part in parts if part not in GENERAL)
    named = [each for each in re.sub(r"\[\d+\]", "", text.partition(" of ")[0]).split(".") if each != "spec"]
    return any(parts[start : start + len(named)] == named for start in range(len(parts)))


class Stage:
    """One driver with the objects that stand beside the one that is looked at."""

    def __init__(self, type: str, making: Making) -> None:
        self.type = type
        self.making = making
        self._made: dict[str, Made] = {}
        self._others: dict[str, list[Any]] = {}

    def outcome(self, changed: Json) -> Outcome | None:
        """All that becomes of a machine when one object is this; None for an object that nobody may store."""
        found = admission.admit(changed, SETTINGS)
        if not found.accepted:
            return None
        kind = changed["kind"]
        if kind not in self._others:
            others = [each for each in self.objects() if each["kind"] != kind]
            self._others[kind] = [admission.admit(each, SETTINGS).value for each in others]
        values = [found.value, *self._others[kind]]
        world = ObjectSet([*values, from_data(SECRET, Secret)], complete=True)
        vm = next(each for each in values if each.kind == "VirtualMachine")
        deps = references.resolve(vm, world)
        if deps.missing:
            return Outcome(f"missing: {deps.missing}")
        return self._said(vm, deps)

    def _said(self, vm: Any, deps: references.MachineDependencies) -> Outcome:
        named = unread.names(vm, deps, self.prepared(deps))
        missing = support.unsupported(vm, deps, self.making.features)
        try:
            request = requests.build(vm, deps, self.prepared(deps))
        except (Refusal, PaddockError) as refusal:
            return Outcome("", (f"refused: {refusal}",))
        key = repr([getattr(request, name) for name in request.__struct_fields__])
        if key not in self._made:
            self._made[key] = self.making.machine(request)
        image = deps.image
        imported = ""
        if image is not None and preparation.needs_import(image.spec, self.provider_type):
            imported = self._imported(image.spec)
        made, limitations = self._made[key]
        refused = [each for each in (made, imported) if each.startswith("refused: ")]
        told = [f"refused: {each}" for each in limitations]
        return Outcome(repr((made, imported, limitations)), (*named, *missing, *refused, *told))

    def _imported(self, spec: VMImageSpec) -> str:
        names = imagecredentials.names(spec, self.provider_type, self.making.features)
        try:
            if names not in ((), ("example",)):
                return f"refused: there is no Secret {names[0]}"
            document = imagecredentials.document(spec, dict.fromkeys(names, decoded(from_data(SECRET, Secret))))
        except Refusal as refusal:
            return f"refused: {refusal}"
        return self.making.image(payloads.encode_manifest(document))

    @property
    def provider_type(self) -> str:
        return PROVIDER.get(self.type, self.type)

    def prepared(self, deps: references.MachineDependencies) -> Any:
        """The image where it was prepared, if the hypervisor takes no other."""
        place = PREPARED.get(self.provider_type)
        if deps.image is None or place is None or not preparation.needs_import(deps.image.spec, self.provider_type):
            return None
        return ProviderImage(available=True, id=place, path=place)

    def objects(self) -> list[Json]:
        provider = {
            **document(
                "Provider",
                {
                    "type": self.provider_type,
                    "endpoint": "https://lab",
                    "credentialSecretRef": {"name": "lab"},
                    "runtime": {"image": "a/b:1"},
                },
            ),
        }
        provider["metadata"] = {"name": "lab", "namespace": "default"}
        return [provider, *(bases(kind, self.type)[0] for kind in KINDS)]


@cache
def stage(type: str) -> Stage:
    return Stage(type, makings()[type])


def nearest(given: list[Json], path: Path) -> list[Json]:
    """Return the documents that have most of a path."""

    def depth(base: Any) -> int:
        for count, part in enumerate(path):
            try:
                base = base[part]
            except (KeyError, IndexError, TypeError):
                return count
        return len(path)

    most = max(map(depth, given))
    return [each for each in given if depth(each) == most]


def matters(place: Place, on: Stage, given: list[Json]) -> bool:
    """Return whether another value of a field makes another outcome."""
    for base in nearest(given, place.path):
        seen = set()
        for value in (*candidates(place), *MORE):
            changed = with_value(copy.deepcopy(base), place, value)
            said = on.outcome(changed) if changed is not None else None
            if said is not None:
                seen.add(said)
            if len(seen) > 1 or (said is not None and value is not NOTHING and said.names(place.path)):
                return True
    return False


def of_others(path: str, type: str) -> bool:
    """Return whether a field is in a block for another type of Provider."""
    if path.startswith("spec.source."):
        mine = {name for each in IMAGES[type] for name in each}
        return path.split(".")[2] in {"vsphere", "libvirt", "proxmox", "dataVolume", "registry", "http"} - mine
    if path.startswith("spec.prepare.storage."):
        return path.split(".")[3] in set(BLOCKS) - {PROVIDER.get(type, type)}
    mine = {name for each in NETWORKS.get(type, LIBVIRT_NETWORKS) for name in each}
    return path.startswith("spec.network.") and path.split(".")[2] in set(BLOCKS) - mine


def silent(kind: str, on: Stage) -> Iterator[str]:
    """The fields of a kind that make no difference, and that no table names."""
    found = catalog.find(GROUP, kind)
    assert found is not None
    tables = (*unread.CONTROLLED.get(kind, {}), *unread.STORED.get(kind, {}), *ELSEWHERE.get(on.type, ()))
    for place in documents.places(found):
        path = format_path(place.path)
        general = format_path(tuple("" if isinstance(each, int) else each for each in place.path))
        if (
            is_field(place)
            and not of_others(path, on.type)
            and not unread.is_below(general, tables)
            and not matters(place, on, bases(kind, on.type))
        ):
            yield path


@pytest.mark.spec("virtrigaud", 133)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("type", TYPES)
def test_no_field_is_silent(type: str, kind: str) -> None:
    assert list(silent(kind, stage(type))) == []


def test_a_field_that_nobody_reads_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that does not say the firmware, and a record that believes it was read: the walk names the field."""
    seeing = hardware.class_payload

    def blind(spec: VMClassSpec, *given: Any) -> payloads.ClassPayload:
        return structs.replace(seeing(spec, *given), firmware="")

    monkeypatch.setattr(hardware, "class_payload", blind)
    assert "spec.firmware" in list(silent("VMClass", Stage("vsphere", makings()["vsphere"])))
