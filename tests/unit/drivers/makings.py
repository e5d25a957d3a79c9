"""What each driver makes of a request, as text: the definition, the configuration or the specification, and what it says it cannot do.

Nothing here runs a machine. Two requests with the same text are the same machine to a driver.
"""

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import msgspec

from paddock.contract import extensionmessages as x
from paddock.contract import features as f
from paddock.contract import messages as m
from paddock.contract import payloads as p
from paddock.contract.description import MachineDescription
from paddock.contract.errors import ProviderError
from paddock.contract.specs import ImagePrepare, VMImageSpec
from paddock.dialects.virtrigaud.translate import described
from paddock.kubernetes.core.secret import Secret
from paddock.kubernetes.meta.wire import from_data
from paddock_drivers.firecracker import images as firecracker_images
from paddock_drivers.firecracker import machinespecs
from paddock_drivers.firecracker.driver import _FEATURES as FIRECRACKER
from paddock_drivers.firecracker.settings import FirecrackerSettings
from paddock_drivers.kit import cloudinit, description
from paddock_drivers.kit.cloudinit import GuestDocuments
from paddock_drivers.kubevirt import booting, documents
from paddock_drivers.kubevirt import images as kubevirt_images
from paddock_drivers.kubevirt.settings import KubeVirtDriverSettings
from paddock_drivers.proxmox import images as proxmox_images
from tests import virtualtime
from tests.unit.drivers.proxmox import conftest as proxmox

# What is made, and the limitations that the driver names.
Made = tuple[str, tuple[str, ...]]
Maker = Callable[[m.CreateRequest], Made]
# A Secret for everything that refers to one.
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "example", "namespace": "default"},
    "data": {
        "username": "bWU=",
        "password": "cHc=",
        "token": "dG9rZW4=",
        "tls.crt": "YQ==",
        "tls.key": "YQ==",
        "userdata": "I2Nsb3VkLWNvbmZpZwo=",
        "metadata": "YTogYgo=",
        "ignition": "e30=",
    },
}


class Making(msgspec.Struct, frozen=True):
    """A driver: its features, and what it makes of a request for a machine and of an image to import."""

    features: tuple[str, ...] | None
    machine: Maker
    image: Callable[[str], str]


def told(made: Callable[[], Any]) -> str:
    """What a driver makes, or the words in which it refuses."""
    try:
        return repr(made())
    except ProviderError as error:
        return f"refused: {error}"
    except Exception as error:
        # Other layers refuse in their own errors.
        if hasattr(error, "why"):
            return f"refused: {error}"
        raise


# --- a provider that has everything, and one of upstream's ------------------------------------------------------------------


def _request(request: m.CreateRequest) -> Made:
    return repr([getattr(request, name) for name in request.__struct_fields__]), ()


def _common(request: m.CreateRequest) -> Made:
    """A request without the members that only Paddock has."""
    parts: dict[str, tuple[Any, bool]] = {
        "class_json": (p.ClassPayload, False),
        "image_json": (p.ImagePayload, False),
        "networks_json": (p.NetworkPayload, True),
        "disks_json": (p.DiskPayload, True),
        "placement_json": (p.PlacementPayload, False),
    }
    found: list[Any] = []
    for name, (kind, many) in parts.items():
        text = getattr(request, name)
        found.append([_plain(each) for each in p.decode_list(text, kind)] if many else _plain(p.decode(text, kind)))
    return repr((found, request.user_data, request.meta_data, request.tags)), ()


def _plain(value: Any) -> Any:
    if not isinstance(value, p.JsonPayload):
        return value
    fields = msgspec.structs.fields(type(value))
    return {each.name: _plain(getattr(value, each.name)) for each in fields if "UnsetType" not in str(each.type)}


# --- libvirt --------------------------------------------------------------------------------------------------------------------


@cache
def _libvirt() -> Any:
    """A connection to libvirt's driver for tests, which has one pool."""
    import libvirt  # noqa: PLC0415 - without the library, tests skip

    return libvirt.open("test:///default")


class _Direct:
    """The driver's connection, without its threads."""

    settings = SimpleNamespace(pool="default-pool", network="default", create_seconds=1.0)

    async def run(self, function: Callable[..., Any], *given: Any) -> Any:
        return function(_libvirt(), *given)


def _named_volume(conn: Any, image: p.ImagePayload, pool: str, machine: str) -> Any:
    """A volume for any image, called what that says; libvirt's driver for tests has no content to read."""
    from paddock_drivers.libvirt.imagesources import SourceVolume  # noqa: PLC0415
    from paddock_drivers.libvirt.storageport import StoredDisk  # noqa: PLC0415

    return SourceVolume(
        stored=StoredDisk(path=image.template_name or image.path, pool=pool, volume="image", format="qcow2", capacity=1 << 20)
    )


def _on_libvirt(request: m.CreateRequest) -> Any:
    from paddock_drivers.libvirt import definition, marks, support  # noqa: PLC0415
    from paddock_drivers.libvirt.abilities import HypervisorAbilities  # noqa: PLC0415
    from paddock_drivers.libvirt.definition import DomainPlan  # noqa: PLC0415
    from paddock_drivers.libvirt.settings import LibvirtDriverSettings  # noqa: PLC0415
    from paddock_drivers.libvirt.volumes import VolumeStore  # noqa: PLC0415

    modes = frozenset(("host-passthrough", "maximum"))
    able = HypervisorAbilities(type="kvm", vendor="Intel", efi=True, secure_boot=True, tpm=True, mhz=2000, most_cpus=64, cpu_modes=modes)
    given = description.of_create(request)
    support.check(given, able)
    store: Any = VolumeStore(_Direct())  # type: ignore[arg-type]
    with mock.patch("paddock_drivers.libvirt.imagesources.find", _named_volume):
        disks = tuple(definition.limited(each, given.hardware) for each in asyncio.run(store.plan(given, marks.machine_uuid("web"))))
    plan = DomainPlan(given=given, uuid=marks.machine_uuid("web"), disks=disks, seed=None, marks=marks.MachineMarks())
    settings = LibvirtDriverSettings(endpoint="test:///default", credentials=Path("/nonexistent"))
    return (definition.build(plan, able, settings), disks, _seed(given), request.tags), support.limitations(given, able)


def _libvirt_image(text: str) -> Any:
    from paddock_drivers.libvirt import images  # noqa: PLC0415

    spec = images.image_spec(text)
    source, prepare = images.with_login(images.read_source(spec), text), spec.prepare or ImagePrepare()
    wish = images._storage(prepare)
    hint = wish.libvirt.storagePool if wish.libvirt is not None else None
    return source, source.web and msgspec.structs.asdict(source.web), hint, images._compressed(prepare)


def _libvirt_features() -> tuple[str, ...]:
    from paddock_drivers.libvirt import capabilities  # noqa: PLC0415

    return (*capabilities._MEMBERS, f"{f.PERFORMANCE}.nestedVirtualization", f"{f.RESOURCE_LIMITS}.cpuLimit")


def _seed(given: MachineDescription) -> bytes:
    """The documents of a guest whose cards have addresses."""
    cards = tuple(
        msgspec.structs.replace(card, mac_address=card.mac_address or f"52:54:00:00:00:0{index}")
        for index, card in enumerate(given.networks)
    )
    found = GuestDocuments(instance="1", hostname=given.name, networks=cards, user_data=given.user_data, meta_data=given.meta_data)
    return cloudinit.image(found) if cloudinit.wanted(found) else b""


# --- Proxmox VE -----------------------------------------------------------------------------------------------------------------


_IDENTITIES = ("description", "smbios1", "vmgenid", "meta")
_DERIVED = re.compile("BC:24:11(:[0-9A-F]{2}){3}|paddock-[0-9a-f]+")


def _on_proxmox(request: m.CreateRequest) -> Made:
    found: list[Made] = []

    async def script(stage: proxmox.Stage) -> None:
        try:
            answer = await stage.driver.create(request)
            problem = await stage.finish(answer.task)
        except ProviderError as error:
            problem = str(error)
        if problem:
            found.append((f"refused: {problem}", ()))
            return
        machine = stage.simulator.machine(int(answer.id.partition("/")[0]))
        files = [each.file for each in stage.simulator.cluster.volumes.values() if each.kind == "iso"]
        # What follows from a digest of the whole request differs for every field, read or not.
        conf = {key: re.sub(_DERIVED, "", value) for key, value in machine.conf.items() if key not in _IDENTITIES}
        disks = sorted((each.format, each.parent) for each in stage.simulator.cluster.volumes.values() if each.vmid == machine.vmid)
        said = (await stage.raw(answer.id)).get("limitations", "")
        made = (machine.node, machine.pool, sorted(conf.items()), files, disks, stage.count(".*clone.*"))
        found.append((repr(made), tuple(json.loads(said or "[]"))))

    proxmox.play(script)
    return found[0]


@cache
def _proxmox_features() -> tuple[str, ...]:
    found: list[tuple[str, ...]] = []

    async def script(stage: proxmox.Stage) -> None:
        found.append((await stage.driver.get_features(x.GetFeaturesRequest())).features)

    proxmox.play(script)
    return found[0]


def _proxmox_image(text: str) -> Any:
    spec = proxmox_images.image_spec(text)
    own, template = spec.source.proxmox, proxmox_images.reference(spec.source)
    found = template or msgspec.structs.asdict(proxmox_images.origin(spec))
    return found, (own.node, own.storage) if own is not None else ()


# --- KubeVirt -------------------------------------------------------------------------------------------------------------------

_KUBEVIRT = KubeVirtDriverSettings(translation=described.translate, processor_mhz=2000)


def _on_kubevirt(request: m.CreateRequest) -> Any:
    given = description.of_create(request)
    namespace, name = booting.named(given.image)
    boot = booting.BootDisk(kind=booting.BootKind.COPY_SOURCE, name=name, namespace=namespace) if name else booting.fetched(given.image)
    made = documents.build(given, boot, _KUBEVIRT)
    return (made.machine, made.secrets, made.definitions, made.firewall.spec), made.limitations


def _kubevirt_image(text: str) -> Any:
    spec = kubevirt_images.image_spec(text)
    kubevirt_images.reachable_block(spec)
    named = kubevirt_images._secret_names(spec)
    secrets = tuple(from_data({**SECRET, "metadata": {"name": name, "namespace": _KUBEVIRT.namespace}}, Secret) for name in named)
    return kubevirt_images.prepared_image("image", spec, _KUBEVIRT, secrets), named


# --- Firecracker ----------------------------------------------------------------------------------------------------------------


def _on_firecracker(request: m.CreateRequest) -> Any:
    given = description.of_create(request)
    settings = FirecrackerSettings(directory=Path("/data"), files=(Path("/images"),), default_network="br0")
    asked = machinespecs.asked(given, settings, "0123456789abcdef")
    return (asked.spec, asked.origin, asked.url, asked.checksum, _seed(given), given.tags), asked.limitations


def _firecracker_image(text: str) -> Any:
    return msgspec.structs.asdict(firecracker_images._source(json.loads(text)))


# --- vSphere --------------------------------------------------------------------------------------------------------------------


def _on_vsphere(request: m.CreateRequest) -> Any:
    from pyVmomi import vim  # noqa: PLC0415 - without the library, tests skip

    from paddock_drivers.vsphere import disks, guestinfo, hardware, machines, networks  # noqa: PLC0415
    from tests.unit.drivers.vsphere.test_disks import machine as devices  # noqa: PLC0415
    from tests.unit.drivers.vsphere.test_hardware import config  # noqa: PLC0415

    given = description.of_create(request)
    hardware.check(given.hardware)
    defaults = given.hardware.disk_defaults or p.DiskDefaultsPayload()
    wishes = disks.DiskWishes(
        disks=given.disks,
        root_gib=max(defaults.size_gib, 10),
        type=defaults.type,
        iops=defaults.iops or 0,
        storage=disks.VSphereDiskStorage,
    )

    def backing(card: p.NetworkPayload) -> Any:
        return vim.vm.device.VirtualEthernetCard.NetworkBackingInfo(deviceName=card.network_name)

    changed = hardware.changes(config(), given.hardware, running=False)
    disk_changes = disks.changes(devices(), {}, wishes)
    cards = networks.changes([], {}, given.networks, backing, fresh=True)
    texts = guestinfo.settings(
        "1",
        given.name,
        given.user_data,
        given.meta_data,
        tuple(msgspec.structs.replace(c, mac_address=c.mac_address or "00:50:56:00:00:01") for c in given.networks),
    )
    said = (*changed.limitations, *disk_changes.limitations, *cards.limitations)
    return (
        changed.spec,
        disk_changes.changes,
        disk_changes.places,
        cards.changes,
        texts,
        machines._place(given),
        given.image,
        given.tags,
    ), said


def _vsphere_image(text: str) -> Any:
    from paddock_drivers.vsphere import images  # noqa: PLC0415

    spec: VMImageSpec = images.image_spec(text)
    origin = images.image_origin(spec)
    storage = spec.prepare.storage if spec.prepare is not None else None
    return msgspec.structs.asdict(origin.order), origin.format, storage.vsphere if storage is not None else None


def makings() -> Mapping[str, Making]:
    """Each driver by the type of its Provider, the fake one, and a provider of upstream."""
    from paddock_drivers.vsphere.capabilities import FEATURES  # noqa: PLC0415

    def of(make: Callable[[m.CreateRequest], Any]) -> Maker:
        def made(request: m.CreateRequest) -> Made:
            said: list[str] = []

            def work() -> Any:
                found, limitations = make(request)
                said.extend(limitations)
                return found

            return told(work), tuple(said)

        return made

    def image(read: Callable[[str], Any]) -> Callable[[str], str]:
        return lambda text: told(lambda: read(text))

    return {
        "fake": Making((*f.CALLS, *f.MEMBERS), _request, str),
        "upstream": Making(None, _common, str),
        "qemu": Making(kubevirt_features(), of(_on_kubevirt), image(_kubevirt_image)),
        "libvirt": Making(_libvirt_features(), of(_on_libvirt), image(_libvirt_image)),
        "proxmox": Making(_proxmox_features(), _on_proxmox, image(_proxmox_image)),
        "vsphere": Making(FEATURES, of(_on_vsphere), image(_vsphere_image)),
        "firecracker": Making(FIRECRACKER, of(_on_firecracker), image(_firecracker_image)),
    }


@cache
def kubevirt_features() -> tuple[str, ...]:
    """The features of the driver at a host of Paddock's own."""
    from tempfile import TemporaryDirectory  # noqa: PLC0415

    from paddock_drivers.kubevirt.driver import KubeVirtDriver  # noqa: PLC0415
    from tests.kit.engine.fakehost import FakeHost  # noqa: PLC0415

    found: list[tuple[str, ...]] = []

    async def script(folder: str) -> None:
        async with FakeHost(Path(folder)) as host:
            driver = KubeVirtDriver(host.api.client(), _KUBEVIRT)
            found.append((await driver.get_features(x.GetFeaturesRequest())).features)

    with TemporaryDirectory() as folder:
        virtualtime.run(script(folder))
    return found[0]
