"""Preparing images: each content is imported once, into a DataVolume with a DataSource of its name, and machines copy it.

The name says the content, by a sum of its source. So images of one name in two namespaces of the manager stay apart, and a changed
image is another one.
"""

import asyncio
import hashlib

import msgspec

from paddock.base import names, reasons
from paddock.contract import extensionmessages as x
from paddock.contract import messages as m
from paddock.contract import payloads, specs
from paddock.contract.description import NOT_COMPARED, MachineDescription
from paddock.contract.specs import VMImageSpec
from paddock.kubernetes.core.secret import Secret
from paddock.kubernetes.meta.objects import ObjectMeta, owned_by
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.storage import ResourceRequirements
from paddock.kubernetes.meta.translated import Loss
from paddock.kubernetes.meta.wire import to_data
from paddock.kubevirt.kinds.datasource import DataSource, DataSourceSource, DataSourceSpec
from paddock.kubevirt.kinds.datavolume import DataVolumeSpec, NamespacedReference
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock_drivers.kit import refusals
from paddock_drivers.kubevirt import booting, marks, progress, targets
from paddock_drivers.kubevirt.booting import BootDisk, BootKind
from paddock_drivers.kubevirt.cluster import TargetCluster, id_of, is_owned
from paddock_drivers.kubevirt.identifiers import TaskGoal, TaskId
from paddock_drivers.kubevirt.settings import KubeVirtDriverSettings

_TYPE = "qemu"
# Well within the deadline of ImagePrepare.
_REMOVAL_SECONDS = 200.0
_REACHABLE = ("http", "registry", "dataVolume", "libvirt")


class PreparedImage(msgspec.Struct, frozen=True):
    """What an image becomes: the disk's spec, and the Secrets by which it is fetched."""

    spec: DataVolumeSpec
    secrets: tuple[Secret, ...]


class ImagePreparation:
    def __init__(self, cluster: TargetCluster) -> None:
        self._cluster = cluster

    async def prepare(self, request: m.ImagePrepareRequest) -> m.ImagePrepareResponse:
        """Import an image, or answer with the one that is there."""
        spec = image_spec(request.image_json)
        block = reachable_block(spec)
        name = image_name(request.target_name, spec, block)
        existing = await self._cluster.find(targets.DATA_VOLUMES, name)
        if existing is not None and _is_again(spec, existing):
            await self._remove(existing)
            existing = None
        volume = existing or await self._import(name, request.storage_hint, spec)
        if (volume.metadata.labels or {}).get(marks.PURPOSE) != booting.IMAGE:
            raise refusals.conflict(f"DataVolume {name} exists and is no prepared image", fix="rename the image")
        await self._source(volume)
        task = m.TaskRef(id=str(TaskId(TaskGoal.PREPARED, id_of(volume))))
        return m.ImagePrepareResponse(task=task, prepared_image_id=name, prepared_image_path=name)

    async def delete(self, request: x.ImageDeleteRequest) -> m.TaskResponse:
        """Delete a prepared image, or an imported disk that no machine has, with all that belongs to it. Anything else stays."""
        name = request.image_id or request.image_path
        if not names.is_subdomain(name):
            raise refusals.invalid("no image is named", fix="send the id or the path that ImagePrepare answered with")
        volume = await self._cluster.find(targets.DATA_VOLUMES, name)
        if volume is None:
            return m.TaskResponse()
        purpose = (volume.metadata.labels or {}).get(marks.PURPOSE)
        if purpose != booting.IMAGE and not (purpose == booting.DISK and not volume.metadata.ownerReferences):
            raise refusals.conflict(f"DataVolume {name} is neither a prepared image nor a disk without a machine, and stays")
        await self._cluster.delete(targets.DATA_VOLUMES, id_of(volume), foreground=True)
        return m.TaskResponse(task=m.TaskRef(id=str(TaskId(TaskGoal.UNPREPARED, id_of(volume)))))

    async def _remove(self, volume: DataVolume) -> None:
        """Delete an image and wait until it is gone: whoever imports it again hears of that import, and not of its removal."""
        await self._cluster.delete(targets.DATA_VOLUMES, id_of(volume), foreground=True)
        ends = asyncio.get_running_loop().time() + _REMOVAL_SECONDS
        while await self._cluster.find_id(targets.DATA_VOLUMES, id_of(volume)) is not None:
            if asyncio.get_running_loop().time() > ends:
                raise refusals.retry_later(f"the former import of image {volume.metadata.name} is not removed after {_REMOVAL_SECONDS:g} s")
            await asyncio.sleep(self._cluster.settings.poll_seconds)

    async def _import(self, name: str, storage_class: str, spec: VMImageSpec) -> DataVolume:
        needed = await self._secrets(spec)
        prepared = prepared_image(name, spec, self._cluster.settings, needed, storage_class)
        wanted = DataVolume(
            apiVersion=targets.DATA_VOLUMES.api_version,
            kind=targets.DATA_VOLUMES.kind,
            metadata=ObjectMeta(
                name=name,
                namespace=self._cluster.namespace,
                labels={marks.PURPOSE: booting.IMAGE},
                # Filled at once, also where a StorageClass waits for the first consumer: nobody boots from it.
                annotations={"cdi.kubevirt.io/storage.bind.immediate.requested": "true"},
            ),
            spec=prepared.spec,
        )
        volume = await self._cluster.ensure(targets.DATA_VOLUMES, wanted)
        for secret in prepared.secrets:
            metadata = ObjectMeta(name=secret.metadata.name, namespace=self._cluster.namespace, ownerReferences=owned_by(volume))
            found = await self._cluster.ensure(targets.SECRETS, msgspec.structs.replace(secret, metadata=metadata))
            if not is_owned(found, volume):
                raise refusals.conflict(f"Secret {secret.metadata.name} exists and does not belong to the image {name}")
        return volume

    async def _source(self, volume: DataVolume) -> None:
        """Give the image a name that DataVolumes can refer to; it goes with the image."""
        name = volume.metadata.name
        wanted = DataSource(
            apiVersion=targets.DATA_SOURCES.api_version,
            kind=targets.DATA_SOURCES.kind,
            metadata=ObjectMeta(
                name=name, namespace=self._cluster.namespace, labels={marks.PURPOSE: booting.IMAGE}, ownerReferences=owned_by(volume)
            ),
            spec=DataSourceSpec(source=DataSourceSource(pvc=NamespacedReference(namespace=self._cluster.namespace, name=name))),
        )
        found = await self._cluster.ensure(targets.DATA_SOURCES, wanted)
        if not is_owned(found, volume):
            raise refusals.conflict(f"DataSource {name} exists and does not belong to the image", fix="rename the image")

    async def _secrets(self, spec: VMImageSpec) -> tuple[Secret, ...]:
        """The Secrets that an image names. They have to be in the target's namespace: the contract carries none."""
        wanted = sorted(set(_secret_names(spec)))
        found = await asyncio.gather(*(self._cluster.find(targets.SECRETS, name) for name in wanted))
        missing = [name for name, secret in zip(wanted, found, strict=True) if secret is None]
        if missing:
            what = f"the image needs Secret {missing[0]}, which is not in namespace {self._cluster.namespace} of the target"
            raise refusals.not_found(what, "create it there", reason=reasons.SECRET_MISSING)
        return tuple(secret for secret in found if secret is not None)


def image_spec(text: str) -> VMImageSpec:
    """Return the spec of an image; raises InvalidSpec."""
    try:
        return msgspec.convert(payloads.decode_manifest(text), VMImageSpec)
    except msgspec.ValidationError as error:
        raise refusals.invalid("the image cannot be read", why=str(error)) from None


def reachable_block(spec: VMImageSpec) -> str:
    """Return the block of an image that counts here; raises NotSupported when all of it is at other hypervisors."""
    blocks = specs.image_blocks(spec.source, _TYPE)
    if not blocks:
        raise refusals.invalid("the image has no source", fix="give source.http, source.registry or source.dataVolume")
    libvirt = spec.source.libvirt
    for block in blocks:
        if block in _REACHABLE and (block != "libvirt" or (libvirt is not None and (libvirt.url or "").startswith("http"))):
            return block
    why = f"source.{blocks[0]} is at another hypervisor"
    raise refusals.not_supported("the image cannot be imported", why=why, fix="give source.http, source.registry or source.dataVolume")


def image_name(target: str, spec: VMImageSpec, block: str) -> str:
    """Return the name of a prepared image."""
    content = msgspec.json.encode(to_data(getattr(spec.source, block)), order="deterministic")
    digest = hashlib.sha256(content).hexdigest()[:8]
    return f"{marks.object_name(target or 'image')[:54].rstrip('-')}-{digest}"


def prepared_image(
    name: str, spec: VMImageSpec, settings: KubeVirtDriverSettings, secrets: tuple[Secret, ...], storage_class: str = ""
) -> PreparedImage:
    """Return the disk of an image: the one that a machine with this image would have. Pure."""
    given = MachineDescription(name=name, hardware=payloads.ClassPayload(cpu=1, memory_mib=1), image=payloads.ImagePayload())
    boot = BootDisk(kind=BootKind.FETCH, name=name, image=spec.source)
    rendering = Rendering(product=settings.product, architecture=settings.architecture)
    result = settings.translation(given, boot.source(spec), settings.namespace, rendering, secrets)
    _check_losses(result.losses)
    machine = next(each for each in result.value if isinstance(each, VirtualMachine))
    template = (machine.spec.dataVolumeTemplates or [])[0]
    storage = template.spec.storage
    copies = template.spec.source is not None and template.spec.source.pvc is not None
    assert storage is not None
    storage = msgspec.structs.replace(
        storage,
        resources=None if copies else ResourceRequirements(requests={"storage": settings.image_size}),
        storageClassName=storage_class or storage.storageClassName,
    )
    found = tuple(each for each in result.value if isinstance(each, Secret))
    return PreparedImage(msgspec.structs.replace(template.spec, storage=storage), found)


def _check_losses(losses: tuple[Loss, ...]) -> None:
    """Raise InvalidSpec for an image whose content would not be compared as it has to be."""
    lost = next((each for each in losses if each.path[-1:] == ("checksum",) and each.of.startswith("VMImage/")), None)
    if lost is not None and lost.why != NOT_COMPARED:
        raise refusals.invalid("the image cannot be compared with its checksum", why=lost.why, fix="correct it, or set validateChecksum")


def _is_again(spec: VMImageSpec, volume: DataVolume) -> bool:
    """Return whether an image is imported once more: by force, or because the last attempt failed."""
    if volume.metadata.deletionTimestamp is not None:
        return True
    return bool(progress.filled({volume.metadata.name: volume}, {}).error)


def _secret_names(spec: VMImageSpec) -> list[str]:
    http, registry = spec.source.http, spec.source.registry
    found = [registry.pullSecretRef.name] if registry is not None and registry.pullSecretRef is not None else []
    given = http.authentication if http is not None else None
    ways = (given.basicAuth, given.bearer, given.clientCert) if given is not None else ()
    return [*found, *(each.secretRef.name for each in ways if each is not None)]
