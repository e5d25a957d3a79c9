"""The fields of a machine, its class, its image and its networks that nothing acts on (docs/design/0014-unread-fields.md).

A request is made from views of the objects, which note what is read. What the request does not say, no controller carries out and nobody
only keeps is named: so is a field that is declared tomorrow.
"""

from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec

from paddock.contract import specs
from paddock.dialects.virtrigaud.kinds import sources
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.kinds.vmimage import ProviderImage
from paddock.dialects.virtrigaud.plan import preparation, requests
from paddock.dialects.virtrigaud.plan.references import MachineDependencies
from paddock.dialects.virtrigaud.plan.refusals import Refusal
from paddock.kubernetes.meta.fieldrecord import FieldRecord
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.world import namespace_of
from paddock.kubernetes.schema.finding import Path, format_path

R = TypeVar("R", bound=Resource)
Fields = Mapping[str, str]


def _notes(what: str, *members: str) -> Fields:
    return {f"spec.metadata.{each}": f"about the {what}, for people" for each in members}


# What controllers carry out themselves, by kind and path; `[]` is any entry of a list.
CONTROLLED: Mapping[str, Fields] = {
    "VirtualMachine": {
        "spec.providerRef": "the Provider that is asked",
        "spec.classRef": "the class of the request",
        "spec.imageRef": "the image of the request",
        "spec.placementRef": "the policy that chooses the place of the request",
        "spec.networks[].networkRef": "the network of the card",
        "spec.disks[].expandPolicy": "whether a disk grows while the machine runs",
        "spec.userData": "the documents of the request",
        "spec.metaData": "the documents of the request",
        "spec.powerState": "the power of the machine",
        "spec.lifecycle": "hooks, and the time for a shutdown",
        "spec.snapshot": "the snapshot that the machine goes back to",
        "spec.importedDisk.sizeGiB": "compared with the disk at the provider",
    },
    "VMImage": {
        "spec.source.http.timeout": "how long an import may take",
        "spec.prepare.onMissing": "whether an image is imported",
        "spec.prepare.validateChecksum": "whether the checksum is compared",
        "spec.prepare.timeout": "how long an import may take",
        "spec.prepare.retries": "how often an import is tried again",
        "spec.prepare.force": "whether an image that is there is imported",
    },
}
# What is kept for people and programs, and changes no machine.
STORED: Mapping[str, Fields] = {
    "VirtualMachine": {
        "spec.importedDisk.source": "says where the disk came from",
        "spec.importedDisk.migrationRef": "says which VMMigration brought the disk",
        "spec.importedDisk.format": "says what the disk is; a provider that recognizes disks by their content does not need it",
    },
    "VMImage": {
        "spec.source.libvirt.format": "says what the file is; a provider that recognizes images by their content does not need it",
        "spec.source.registry.format": "says what the file is; a provider that recognizes images by their content does not need it",
        "spec.metadata": "about the image, for people",
        "spec.distribution": "the image's operating system, for people",
    },
    "VMNetworkAttachment": {
        "spec.network.type": "says what the network is; without a block it is a Provider's own network, for types qemu and firecracker",
        "spec.metadata": "about the network, for people",
    },
    "VMClone": _notes("clone", "purpose", "createdBy", "project", "environment", "tags"),
    "VMMigration": _notes("migration", "purpose", "createdBy", "project", "environment", "tags"),
    "VMSnapshot": _notes("snapshot", "purpose", "application", "environment", "tags"),
}
# What an import reads of an image, and the request for a machine does not say.
_IMPORTED = (
    *(f"spec.source.{block}" for block in ("http", "registry", "dataVolume")),
    *(f"spec.source.libvirt.{member}" for member in ("url", "checksum", "checksumType")),
    *(f"spec.source.vsphere.{member}" for member in ("ovaURL", "checksum", "checksumType")),
    *(f"spec.prepare.{member}" for member in ("storage", "optimization")),
)


def names(vm: VirtrigaudVirtualMachine, dependencies: MachineDependencies, prepared: ProviderImage | None) -> tuple[str, ...]:
    """Return the paths that nothing acts on, with their objects; none for a machine that cannot be requested."""
    if dependencies.provider is None or dependencies.vmclass is None:
        return ()
    kind = dependencies.provider.spec.type
    own, of_class = FieldRecord(vm), FieldRecord(dependencies.vmclass)
    of_image = FieldRecord(dependencies.image) if dependencies.image is not None else None
    of_networks = {key: FieldRecord(network) for key, network in dependencies.networks.items()}
    viewed = msgspec.structs.replace(
        dependencies,
        vmclass=of_class.view,
        image=of_image.view if of_image is not None else None,
        networks={key: record.view for key, record in of_networks.items()},
    )
    try:
        requests.build(own.view, viewed, prepared)
    except Refusal:
        return ()
    texts = [*_unread(own), *_unread(of_class)]
    if of_image is not None:
        source = of_image.resource.spec.source
        _pass_over(of_image, ("spec", "source"), specs.image_blocks(source, kind), specs.image_block(source, kind))
        of_hosts = ("spec.source.libvirt",) if kind == "libvirt" else ()
        texts += _unread(of_image, (*_IMPORTED, *of_hosts) if preparation.needs_import(of_image.resource.spec, kind) else ())
    for record in of_networks.values():
        config = record.resource.spec.network
        _pass_over(record, ("spec", "network"), sources.network_blocks(config, kind), sources.network_block(config, kind))
        # A word for people, but for a Provider that has no blocks.
        record.take("spec", "network", "type")
        texts += _unread(record)
    return tuple(texts)


def _pass_over(record: FieldRecord[R], path: Path, blocks: tuple[str, ...], chosen: str | None) -> None:
    """Note that the blocks that were not chosen are for other types of provider."""
    for block in blocks:
        if block != chosen:
            record.take_whole(*path, block)


def _unread(record: FieldRecord[R], elsewhere: tuple[str, ...] = ()) -> Iterator[str]:
    resource = record.resource
    kind = resource.kind or type(resource).__name__.removeprefix("Virtrigaud")
    kept = (*CONTROLLED.get(kind, {}), *STORED.get(kind, {}), *elsewhere)
    for loss in record.settle():
        path = format_path(tuple("" if isinstance(each, int) else each for each in loss.path))
        if not is_below(path, kept):
            yield f"{format_path(loss.path)} of {kind} {namespace_of(resource)}/{resource.metadata.name}"


def is_below(path: str, places: tuple[str, ...]) -> bool:
    """Return whether a path is one of some places, or leads below one."""
    return any(path == each or path.startswith((f"{each}.", f"{each}[")) for each in places)
