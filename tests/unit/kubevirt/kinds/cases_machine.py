"""V1 to V15, V105 and V118: what is around the hardware of a machine."""

from functools import partial
from typing import Any

from paddock.kubernetes.schema.finding import CauseType, Severity
from tests.unit.kubevirt.kinds.cases import VM, Case
from tests.unit.kubevirt.kinds.objects import GONE

_SPEC: dict[str, Any] = {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}}
_PVC = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_USED = {"P.volumes[0]": {"name": "root", "dataVolume": {"name": "disk"}}}


def template(metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """The changes that give the machine a DataVolume for its root disk."""
    members = {name: value for name, value in {**_SPEC, **spec}.items() if value is not None}
    return {**_USED, "spec.dataVolumeTemplates": [{"metadata": {"name": "disk"} if metadata is None else metadata, "spec": members}]}


_machine = partial(Case, kinds=(VM,))
_TEMPLATE = "spec.dataVolumeTemplate[0]"
_REQUESTS = "status.volumeRequests"
_ADD = {"name": "hot", "disk": {"name": "hot", "disk": {"bus": "scsi"}}, "volumeSource": {"dataVolume": {"name": "hot"}}}


def _add(**changes: Any) -> dict[str, Any]:
    return {_REQUESTS: [{"addVolumeOptions": {**_ADD, **changes}}]}


CASES = (
    _machine(1, "no template", {"spec.template": GONE}, "spec.template", "missing virtual machine template", {}, cause=CauseType.REQUIRED),
    _machine(2, "both", {"spec.running": True}, "spec.running", "mutually exclusive", {"spec.running": True, "spec.runStrategy": GONE}),
    _machine(
        2, "both, in the words of Kubermatic", {"spec.running": False}, "spec.running", "Forbidden: running is set too, choose one", {}
    ),
    _machine(
        3,
        "neither",
        {"spec.runStrategy": GONE},
        "spec.running",
        "Required value: RunStrategy must be specified",
        {"spec.runStrategy": "Halted"},
        cause=CauseType.REQUIRED,
    ),
    _machine(
        4,
        "unknown",
        {"spec.runStrategy": "Sometimes"},
        "spec.runStrategy",
        "Invalid RunStrategy (Sometimes)",
        {"spec.runStrategy": "Once"},
        cause=CauseType.NOT_SUPPORTED,
    ),
    _machine(
        4,
        "unknown, in the words of Kubermatic",
        {"spec.runStrategy": "Sometimes"},
        "spec.runStrategy",
        'Unsupported value: "Sometimes"',
        {"spec.runStrategy": "RerunOnFailure"},
        cause=CauseType.NOT_SUPPORTED,
    ),
    _machine(7, "no name", template({}), f"{_TEMPLATE}.name", "metadata.name", template(), cause=CauseType.REQUIRED),
    _machine(
        7,
        "name twice",
        {**template(), "spec.dataVolumeTemplates[1]": {"metadata": {"name": "disk"}, "spec": _SPEC}},
        "spec.dataVolumeTemplate[1].name",
        'Duplicate value: "disk"',
        template(),
        cause=CauseType.DUPLICATE,
    ),
    _machine(
        8,
        "neither",
        template(storage=None),
        f"{_TEMPLATE}.PVC.Storage",
        "Missing Data volume PVC or Storage",
        template(storage=None, pvc=_PVC),
        cause=CauseType.REQUIRED,
    ),
    _machine(9, "both", template(pvc=_PVC), f"{_TEMPLATE}.PVC.Storage", "pvc is set too", template(), cause=CauseType.FORBIDDEN),
    _machine(
        10,
        "no source",
        template(source=None),
        f"{_TEMPLATE}.source.sourceRef",
        "give exactly one of source and sourceRef",
        template(source=None, sourceRef={"kind": "DataSource", "name": "fedora"}),
    ),
    _machine(
        11, "empty source", template(source={}), f"{_TEMPLATE}.source", "Missing dataVolume valid source", template(source={"blank": {}})
    ),
    _machine(
        11,
        "two sources",
        template(source={"blank": {}, "upload": {}}),
        f"{_TEMPLATE}.source",
        "Multiple dataVolume sources",
        template(source={"upload": {}}),
    ),
    _machine(
        12,
        "filled twice",
        template(storage={**_SPEC["storage"], "dataSource": {"kind": "PersistentVolumeClaim", "name": "golden"}}),
        f"{_TEMPLATE}.source",
        "dataSource",
        template(source=None, storage={**_SPEC["storage"], "dataSource": {"kind": "PersistentVolumeClaim", "name": "golden"}}),
        cause=CauseType.FORBIDDEN,
    ),
    _machine(
        13,
        "unused",
        {**template(), "P.volumes[0]": {"name": "root", "emptyDisk": {"capacity": "1Gi"}}},
        _TEMPLATE,
        "must be referenced in the VMI template's 'volumes' list",
        {**template(), "P.volumes[0]": {"name": "root", "persistentVolumeClaim": {"claimName": "disk"}}},
    ),
    _machine(
        13,
        "unused, in the words of Kubermatic",
        {**template(), "P.volumes[0]": {"name": "root", "emptyDisk": {"capacity": "1Gi"}}},
        _TEMPLATE,
        "no volume uses it",
        template(),
    ),
    _machine(
        14,
        "elsewhere",
        template({"name": "disk", "namespace": "other"}),
        "spec.dataVolumeTemplates[0]",
        "differs from the machine's (default)",
        template({"name": "disk", "namespace": "default"}),
    ),
    *(
        _machine(
            15,
            f"instancetype and {field}",
            {"spec.instancetype": {"name": "u1.small"}, "P.domain.memory": GONE, f"P.{field}": value},
            f"spec.template.spec.{field}",
            "conflicts with the instancetype",
            {"spec.instancetype": {"name": "u1.small"}, "P.domain.memory": GONE},
            severity=Severity.WARNING,
        )
        for field, value in (
            ("domain.cpu.sockets", 2),
            ("domain.cpu.cores", 2),
            ("domain.cpu.threads", 2),
            ("domain.memory.guest", "128Mi"),
            ("domain.resources.requests.memory", "128Mi"),
            ("domain.resources.limits.cpu", "2"),
        )
    ),
    _machine(
        118,
        "waits for a machine of another cluster",
        {"spec.running": GONE, "spec.runStrategy": "WaitAsReceiver"},
        "spec.runStrategy",
        "DecentralizedLiveMigration feature gate is not enabled",
        {"spec.running": GONE, "spec.runStrategy": "Halted"},
    ),
    _machine(
        105,
        "no disk",
        _add(disk={"name": "hot", "cdrom": {"bus": "sata"}}),
        _REQUESTS,
        "needs a disk or a lun",
        _add(disk={"name": "hot", "lun": {"bus": "scsi"}}),
    ),
    _machine(105, "bus", _add(disk={"name": "hot", "disk": {"bus": "sata"}}), _REQUESTS, "[sata] is not permitted", _add()),
    _machine(105, "lun bus", _add(disk={"name": "hot", "lun": {"bus": "sata"}}), _REQUESTS, "needs the bus scsi for a lun", _add()),
    _machine(
        105,
        "name taken",
        _add(name="root", disk={"name": "root", "disk": {"bus": "virtio"}}),
        _REQUESTS,
        "conflicts with an existing volume",
        _add(disk={"name": "hot", "disk": {"bus": "virtio"}}),
    ),
    _machine(
        105,
        "no such volume",
        {_REQUESTS: [{"removeVolumeOptions": {"name": "hot"}}]},
        _REQUESTS,
        "no volume of this name",
        {_REQUESTS: [{"removeVolumeOptions": {"name": "root"}}]},
    ),
    _machine(105, "nothing asked", {_REQUESTS: [{}]}, _REQUESTS, "give exactly one of", {_REQUESTS: []}),
)
