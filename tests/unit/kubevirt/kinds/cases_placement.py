"""V106 to V115: placement, hidden memory, claims, features, architectures."""

from typing import Any

from paddock.kubernetes.schema.finding import CauseType
from tests.unit.kubevirt.kinds.cases import VMI, Case
from tests.unit.kubevirt.kinds.objects import GONE

_DEVICES = "P.domain.devices"
_EFI = {"P.domain.firmware.bootloader": {"efi": {"secureBoot": False}}}
_SEV = {**_EFI, "P.domain.launchSecurity": {"sev": {}}}
_SECURITY = "P.launchSecurity"
_CLAIMS = {"P.resourceClaims": [{"name": "c", "resourceClaimName": "c"}]}
_HYPERV = "P.domain.features.hyperv"


def _nodes(**condition: Any) -> dict[str, Any]:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [condition]}]}
    return {"P.affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def _apart(**term: Any) -> dict[str, Any]:
    return {"P.affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def _spread(**members: Any) -> dict[str, Any]:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **members}
    return {"P.topologySpreadConstraints": [constraint]}


def _gpu(**members: Any) -> dict[str, Any]:
    return {f"{_DEVICES}.gpus": [{"name": "g", **members}]}


_NODES = "P.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0]"
_SHARED = {"P.volumes[1]": {"name": "p", "containerPath": {"path": "/x"}}, f"{_DEVICES}.filesystems": [{"name": "p", "virtiofs": {}}]}
_OWN = {**_SHARED, "P.volumes[1]": {"name": "p", "containerPath": {"path": "/var/run/kubevirt/x"}}}

CASES = (
    Case(106, "no values", _nodes(key="a", operator="In"), f"{_NODES}.values", "In", _nodes(key="a", operator="Exists")),
    Case(
        106,
        "no place",
        _apart(topologyKey="", labelSelector={}),
        "P.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey",
        "key of a label",
        _apart(topologyKey="kubernetes.io/hostname", labelSelector={}),
    ),
    Case(107, "skew", _spread(maxSkew=-1), "P.topologySpreadConstraints[0].maxSkew", "greater than zero", _spread()),
    Case(107, "key", _spread(topologyKey=""), "P.topologySpreadConstraints[0].topologyKey", "key of a label", _spread()),
    Case(108, "no firmware", {"P.domain.launchSecurity": {"sev": {}}}, _SECURITY, "SEV needs UEFI", _SEV),
    Case(
        108,
        "two types",
        {**_EFI, "P.domain.launchSecurity": {"sev": {}, "snp": {}}},
        _SECURITY,
        "exactly one",
        _SEV,
        cause=CauseType.FORBIDDEN,
    ),
    Case(
        108,
        "attestation",
        {**_EFI, "P.domain.launchSecurity": {"sev": {"attestation": {}}}},
        _SECURITY,
        "set startStrategy to Paused",
        {**_EFI, "P.domain.launchSecurity": {"sev": {"attestation": {}}}, "P.startStrategy": "Paused"},
    ),
    Case(109, "neither", {"P.resourceClaims": [{"name": "c"}]}, "P.resourceClaims[0]", "exactly one", _CLAIMS),
    Case(
        109,
        "no name",
        {"P.resourceClaims": [{"name": "", "resourceClaimName": "c"}]},
        "P.resourceClaims[0].name",
        "needs a name",
        _CLAIMS,
        cause=CauseType.REQUIRED,
    ),
    Case(110, "no name", _gpu(), f"{_DEVICES}.gpus", "give deviceName", _gpu(deviceName="x.com/y"), cause=CauseType.REQUIRED),
    Case(
        110,
        "unknown claim",
        {**_gpu(claimName="d", requestName="r"), **_CLAIMS},
        "P.resourceClaims",
        "must stand in resourceClaims",
        {**_gpu(claimName="c", requestName="r"), **_CLAIMS},
    ),
    Case(
        111,
        "two",
        {f"{_DEVICES}.gpus": [{"name": each, "deviceName": "x.com/y", "virtualGPUOptions": {"display": {}}} for each in ("a", "b")]},
        "P.GPUs",
        "at most one",
        _gpu(deviceName="x.com/y", virtualGPUOptions={"display": {}}),
    ),
    Case(112, "given", {"P.utilityVolumes": [{"name": "u", "claimName": "c"}]}, "P.utilityVolumes", "plugged into a running machine", {}),
    Case(
        113,
        "without what it needs",
        {_HYPERV: {"ipi": {}, "vpindex": {"enabled": False}}},
        f"{_HYPERV}.domain.features.hyperv.ipi",
        "ipi needs vpindex",
        {_HYPERV: {"ipi": {}}},
        kinds=(VMI,),
    ),
    Case(113, "twice", {_HYPERV: {"ipi": {}}, "P.domain.features.hypervPassthrough": {}}, _HYPERV, "exclude", {_HYPERV: {}}, kinds=(VMI,)),
    Case(
        114,
        "threads",
        {"P.architecture": "arm64", "P.domain.cpu": {"threads": 2, "dedicatedCpuPlacement": True}},
        "P.architecture",
        "one thread",
        {"P.architecture": "arm64", "P.domain.cpu": {"sockets": 2, "dedicatedCpuPlacement": True}},
    ),
    Case(
        114,
        "sound",
        {"P.architecture": "arm64", f"{_DEVICES}.sound": {"name": "s"}},
        f"{_DEVICES}.sound",
        "leave it out",
        {"P.architecture": "arm64", f"{_DEVICES}.sound": GONE},
        cause=CauseType.NOT_SUPPORTED,
        kinds=(VMI,),
    ),
    Case(115, "reserved", _OWN, "P.domain.volumes[1].containerPath.path", "KubeVirt's own", _SHARED, kinds=(VMI,)),
)
