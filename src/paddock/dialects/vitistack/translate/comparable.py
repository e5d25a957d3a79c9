"""Two KubeVirt machines made comparable: different words for the same thing become the same words."""

import msgspec

from paddock.dialects.vitistack.kinds import macs
from paddock.dialects.vitistack.kinds.marks import CLOUD_INIT_DISK
from paddock.kubernetes.meta.objects import ObjectMeta
from paddock.kubernetes.schema.finding import Path
from paddock.kubevirt.kinds.devices import Disk
from paddock.kubevirt.kinds.networks import Interface
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock.kubevirt.kinds.volumes import Volume

# What servers, controllers and kubectl write and nobody says.
_OF_SERVERS = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "managedFields",
)
BOOKKEEPING = (
    "kubectl.kubernetes.io/last-applied-configuration",
    "kubevirt.io/latest-observed-api-version",
    "kubevirt.io/storage-observed-api-version",
)
_ON_BY_DEFAULT = (
    "autoattachPodInterface",
    "autoattachGraphicsDevice",
    "autoattachSerialConsole",
    "autoattachMemBalloon",
    "enabled",
)
# Members of the processors of which 0 means that none is given.
_TOPOLOGY = ("cores", "sockets", "threads")


def said_metadata(metadata: ObjectMeta) -> ObjectMeta:
    """The metadata that a user wrote."""
    annotations = {key: value for key, value in (metadata.annotations or {}).items() if key not in BOOKKEEPING}
    finalizers = [each for each in metadata.finalizers or () if not each.startswith("kubevirt.io/")]
    return msgspec.structs.replace(
        metadata, annotations=annotations or None, finalizers=finalizers or None, **dict.fromkeys(_OF_SERVERS, None)
    )


def comparable(vm: VirtualMachine, documents: Volume | None, cloud_init: str) -> VirtualMachine:
    """The original as its image would say it. `documents` is the image's cloud-init volume, `cloud_init` the original's name for it:
    the documents are compared where they are read.
    """
    instance = vm.spec.template.spec
    devices = instance.domain.devices
    ranks = _ranks(vm)
    disks = [
        msgspec.structs.replace(each, name=CLOUD_INIT_DISK if each.name == cloud_init else each.name, bootOrder=_rank(each, ranks))
        for each in devices.disks or ()
    ]
    cards = [msgspec.structs.replace(each, macAddress=_address(each), bootOrder=_rank(each, ranks)) for each in devices.interfaces or ()]
    volumes = [documents if documents and each.name == cloud_init else each for each in instance.volumes or ()]
    devices = msgspec.structs.replace(devices, disks=disks or None, interfaces=cards or None)
    domain = msgspec.structs.replace(instance.domain, devices=devices)
    instance = msgspec.structs.replace(instance, domain=domain, volumes=volumes or None)
    template = msgspec.structs.replace(vm.spec.template, spec=instance)
    spec = msgspec.structs.replace(vm.spec, template=template)
    return msgspec.structs.replace(vm, metadata=said_metadata(vm.metadata), spec=spec, status=None)


def means_the_same(path: Path, value: object) -> bool:
    """Return whether a value that the image lacks is the default anyway."""
    return (path[-1] in _ON_BY_DEFAULT and value is True) or (path[-2:-1] == ("cpu",) and path[-1] in _TOPOLOGY and value == 0)


def _address(interface: Interface) -> str | None:
    return macs.normal(interface.macAddress) if interface.macAddress else interface.macAddress


def _ranks(vm: VirtualMachine) -> dict[int, int]:
    """Boot orders without gaps: only their order means something."""
    devices = vm.spec.template.spec.domain.devices
    given = {each.bootOrder for each in (*(devices.disks or ()), *(devices.interfaces or ())) if each.bootOrder is not None}
    return {order: rank for rank, order in enumerate(sorted(given), start=1)}


def _rank(device: Disk | Interface, ranks: dict[int, int]) -> int | None:
    return None if device.bootOrder is None else ranks[device.bootOrder]
