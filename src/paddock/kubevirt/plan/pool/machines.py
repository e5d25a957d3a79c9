"""The machines of a pool: their names, and what each of them is (docs/spec/kubermatic.md 2.6 and 4.4, docs/spec/kubevirt.md 6).

Pure. A controller decides how many machines there should be and which numbers are taken; here is what machine `i` looks like.
"""

from collections.abc import Collection, Iterator
from itertools import count, islice

import msgspec

from paddock.kubernetes.meta.objects import ObjectMeta, OwnerReference, TemplateMeta
from paddock.kubernetes.meta.world import namespace_of
from paddock.kubevirt.kinds.instance import VirtualMachineInstanceTemplate
from paddock.kubevirt.kinds.pool import VirtualMachinePool
from paddock.kubevirt.kinds.poolfields import NameGeneration
from paddock.kubevirt.kinds.poolform import machine_spec
from paddock.kubevirt.kinds.virtualmachine import DataVolumeTemplate, VirtualMachine, VirtualMachineSpec
from paddock.kubevirt.kinds.volumes import CloudInitSource, Volume

REVISION_LABEL = "kubevirt.io/vm-pool-revision-name"
FINALIZER = "pool.kubevirt.io/finalizer"
API_VERSION = "pool.kubevirt.io/v1beta1"


def replica_name(pool: VirtualMachinePool, index: int) -> str:
    """The name of a machine of the pool."""
    return f"{pool.metadata.name}-{index}"


def revision_name(pool: VirtualMachinePool) -> str:
    """The ControllerRevision that keeps the pool's spec, and the label that says which one a machine was made from."""
    return f"{pool.metadata.name}-{pool.metadata.generation or 1}"


def free_indices(pool: VirtualMachinePool, taken: Collection[str], wanted: int) -> tuple[int, ...]:
    """The numbers of the next machines: the lowest whose names no machine of the namespace has, its own or a foreign one."""
    return tuple(islice((index for index in count() if replica_name(pool, index) not in taken), wanted))


def most_unavailable(pool: VirtualMachinePool) -> int:
    """Return how many machines may be unavailable during an update: percentages are rounded down, but one may always be."""
    given = pool.spec.maxUnavailable
    if isinstance(given, int):
        return max(1, given)
    percent = int(given.removesuffix("%")) if given else 100
    return max(1, pool.spec.replicas * percent // 100)


def replica(pool: VirtualMachinePool, index: int, revision_of: str = "") -> VirtualMachine:
    """Machine number `index` of a pool, in whichever form the pool is written. A revision may be that of an older generation."""
    given = pool.spec.virtualMachineTemplate.metadata or TemplateMeta()
    revision = {REVISION_LABEL: revision_of or revision_name(pool)}
    metadata = ObjectMeta(
        name=replica_name(pool, index),
        namespace=namespace_of(pool),
        labels={**(given.labels or {}), **revision},
        annotations=given.annotations,
        finalizers=[FINALIZER],
        ownerReferences=_owner(pool),
    )
    spec = machine_spec(pool)
    template = spec.template.metadata or TemplateMeta()
    around = msgspec.structs.replace(template, labels={**(template.labels or {}), **revision})
    return VirtualMachine(
        apiVersion="kubevirt.io/v1",
        kind="VirtualMachine",
        metadata=metadata,
        spec=_numbered(spec, around, index, pool.spec.nameGeneration or NameGeneration()),
    )


def _owner(pool: VirtualMachinePool) -> list[OwnerReference] | None:
    if not pool.metadata.uid:
        return None
    return [
        OwnerReference(
            apiVersion=API_VERSION,
            kind="VirtualMachinePool",
            name=pool.metadata.name,
            uid=pool.metadata.uid,
            controller=True,
            blockOwnerDeletion=True,
        )
    ]


def _numbered(spec: VirtualMachineSpec, around: TemplateMeta, index: int, naming: NameGeneration) -> VirtualMachineSpec:
    """The spec with the number in every name that belongs to the machine alone."""
    own = frozenset(_names(spec))
    hardware = spec.template.spec
    if hardware.volumes is not None:
        volumes = [_volume(volume, own, index, naming) for volume in hardware.volumes]
        hardware = msgspec.structs.replace(hardware, volumes=volumes)
    template = VirtualMachineInstanceTemplate(metadata=around, spec=hardware)
    templates = spec.dataVolumeTemplates
    if templates is not None:
        templates = [_template(each, index) for each in templates]
    return msgspec.structs.replace(spec, template=template, dataVolumeTemplates=templates)


def _names(spec: VirtualMachineSpec) -> Iterator[str]:
    for template in spec.dataVolumeTemplates or ():
        if template.metadata is not None and template.metadata.name:
            yield template.metadata.name


def _template(template: DataVolumeTemplate, index: int) -> DataVolumeTemplate:
    metadata = template.metadata
    if metadata is None or not metadata.name:
        return template
    return msgspec.structs.replace(template, metadata=msgspec.structs.replace(metadata, name=f"{metadata.name}-{index}"))


def _volume(volume: Volume, own: frozenset[str], index: int, naming: NameGeneration) -> Volume:
    """A volume that follows its template; Secrets and ConfigMaps follow only when the pool says so."""
    if volume.dataVolume is not None and volume.dataVolume.name in own:
        disk = msgspec.structs.replace(volume.dataVolume, name=f"{volume.dataVolume.name}-{index}")
        return msgspec.structs.replace(volume, dataVolume=disk)
    if volume.persistentVolumeClaim is not None and volume.persistentVolumeClaim.claimName in own:
        claim = volume.persistentVolumeClaim
        return msgspec.structs.replace(volume, persistentVolumeClaim=msgspec.structs.replace(claim, claimName=f"{claim.claimName}-{index}"))
    if volume.configMap is not None and naming.appendIndexToConfigMapRefs:
        config = msgspec.structs.replace(volume.configMap, name=f"{volume.configMap.name}-{index}")
        return msgspec.structs.replace(volume, configMap=config)
    if naming.appendIndexToSecretRefs:
        return _with_secret(volume, index)
    return volume


def _with_secret(volume: Volume, index: int) -> Volume:
    if volume.secret is not None:
        secret = msgspec.structs.replace(volume.secret, secretName=f"{volume.secret.secretName}-{index}")
        return msgspec.structs.replace(volume, secret=secret)
    if volume.cloudInitNoCloud is not None:
        return msgspec.structs.replace(volume, cloudInitNoCloud=_cloud_init(volume.cloudInitNoCloud, index))
    if volume.cloudInitConfigDrive is not None:
        return msgspec.structs.replace(volume, cloudInitConfigDrive=_cloud_init(volume.cloudInitConfigDrive, index))
    return volume


def _cloud_init(data: CloudInitSource, index: int) -> CloudInitSource:
    changed = {}
    for name in ("secretRef", "networkDataSecretRef"):
        reference = getattr(data, name)
        if reference is not None and reference.name:
            changed[name] = msgspec.structs.replace(reference, name=f"{reference.name}-{index}")
    return msgspec.structs.replace(data, **changed) if changed else data
