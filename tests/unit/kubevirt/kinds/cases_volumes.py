"""V61 to V72: volumes, cloud-init, credentials."""

import base64
from typing import Any

from paddock.kubernetes.schema.finding import CauseType
from tests.unit.kubevirt.kinds.cases import Case, volume

_VOLUME = "P.volumes[1]"
_LONG, _FITS = "#" * 2049, "#" * 2048
_ENCODED = base64.b64encode(_LONG.encode()).decode()
_SECRET = {"secret": {"secretName": "keys"}}
_NO_CLOUD = volume(cloudInitNoCloud={"userData": "#cloud-config\n{}"})
_DRIVE = volume(cloudInitConfigDrive={"userData": "#cloud-config\n{}"})


def _cloud(name: str = "cloudInitNoCloud", **source: Any) -> dict[str, Any]:
    return volume(**{name: source})


def _host(**disk: Any) -> dict[str, Any]:
    return volume(hostDisk={"path": "/var/data/a.img", "type": "Disk", **disk})


def _two(**source: Any) -> dict[str, Any]:
    return {**volume(**source), "P.domain.devices.disks[2]": {"name": "more"}, "P.volumes[2]": {"name": "more", **source}}


def _key(**members: Any) -> dict[str, Any]:
    return {"P.accessCredentials": [{"sshPublicKey": {"source": _SECRET, "propagationMethod": {"noCloud": {}}, **members}}]}


def _password(**members: Any) -> dict[str, Any]:
    return {"P.accessCredentials": [{"userPassword": {"source": _SECRET, "propagationMethod": {"qemuGuestAgent": {}}, **members}}]}


_ALLOWED = {"host_disk_paths": ("/var/data",)}
_KEY = "P.accessCredentials[0].sshPublicKey"

CASES = (
    Case(
        61,
        "root",
        volume(containerDisk={"image": "x", "path": "/"}),
        f"{_VOLUME}.containerDisk",
        "must not point to root",
        volume(containerDisk={"image": "x", "path": "/disk/a.qcow2"}),
    ),
    Case(
        61,
        "relative",
        volume(containerDisk={"image": "x", "path": "disk/a.img"}),
        f"{_VOLUME}.containerDisk",
        "absolute path",
        volume(containerDisk={"image": "x", "path": "/a.img"}),
    ),
    Case(
        61,
        "detour",
        volume(containerDisk={"image": "x", "path": "/disk/../etc/passwd"}),
        f"{_VOLUME}.containerDisk",
        "absolute path",
        volume(containerDisk={"image": "x"}),
    ),
    Case(
        62,
        "twice",
        {_VOLUME: {"name": "root", "emptyDisk": {"capacity": "1Gi"}}},
        f"{_VOLUME}.name",
        "must not have the same Name",
        volume(emptyDisk={"capacity": "1Gi"}),
        cause=CauseType.DUPLICATE,
    ),
    Case(63, "none", volume(), _VOLUME, "must have exactly one source type set", volume(emptyDisk={"capacity": "1Gi"})),
    Case(
        63,
        "two",
        volume(emptyDisk={"capacity": "1Gi"}, configMap={"name": "x"}),
        _VOLUME,
        "must have exactly one source type set",
        volume(configMap={"name": "x"}),
    ),
    Case(
        64,
        "empty name",
        volume(dataVolume={"name": ""}),
        f"{_VOLUME}.name",
        "dataVolume.name must be set",
        volume(dataVolume={"name": "x"}),
        cause=CauseType.REQUIRED,
    ),
    Case(
        64,
        "no name",
        volume(dataVolume={}),
        f"{_VOLUME}.name",
        "dataVolume.name must be set",
        volume(dataVolume={"name": "x"}),
        cause=CauseType.REQUIRED,
    ),
    *(
        Case(
            65,
            f"{name} {member}",
            _cloud(name, **{member: "!"}),
            f"{_VOLUME}.{name}.{member}",
            "not valid base64",
            _cloud(name, **{member: "aGk="}),
        )
        for name in ("cloudInitNoCloud", "cloudInitConfigDrive")
        for member in ("userDataBase64", "networkDataBase64")
    ),
    Case(
        66,
        "user data twice",
        _cloud(userData="a", userDataBase64="aGk="),
        f"{_VOLUME}.cloudInitNoCloud",
        "only one of userData, userDataBase64",
        _cloud(userData="a"),
    ),
    Case(
        66,
        "network data twice",
        _cloud(networkData="a", networkDataSecretRef={"name": "x"}),
        f"{_VOLUME}.cloudInitNoCloud",
        "only one of networkData, networkDataSecretRef",
        _cloud(networkData="a", secretRef={"name": "x"}),
    ),
    Case(
        66,
        "nothing",
        _cloud("cloudInitConfigDrive"),
        f"{_VOLUME}.cloudInitConfigDrive",
        "give at least one of",
        _cloud("cloudInitConfigDrive", secretRef={"name": "x"}),
    ),
    Case(67, "user data", _cloud(userData=_LONG), f"{_VOLUME}.cloudInitNoCloud", "exceeds 2048 byte limit", _cloud(userData=_FITS)),
    Case(
        67,
        "bytes, not letters",
        _cloud(userData="ä" * 1025),
        f"{_VOLUME}.cloudInitNoCloud",
        "exceeds 2048 byte limit",
        _cloud(userData="ä" * 1024),
    ),
    Case(
        67,
        "encoded",
        _cloud(userDataBase64=_ENCODED),
        f"{_VOLUME}.cloudInitNoCloud",
        "exceeds 2048 byte limit",
        _cloud(userDataBase64=base64.b64encode(_FITS.encode()).decode()),
    ),
    Case(
        67,
        "network data",
        _cloud("cloudInitConfigDrive", networkData=_LONG),
        f"{_VOLUME}.cloudInitConfigDrive",
        "exceeds 2048 byte limit",
        _cloud("cloudInitConfigDrive", networkData=_FITS),
    ),
    Case(
        68,
        "gate",
        _host(),
        _VOLUME,
        "HostDisk feature gate is not enabled",
        _host(),
        settings={"target": "cluster"},
        good_settings={"target": "cluster", "gates": frozenset({"HostDisk"})},
        cause=CauseType.FORBIDDEN,
    ),
    Case(
        68, "no directory allowed", _host(), _VOLUME, "HostDisk is not enabled", _host(), good_settings=_ALLOWED, cause=CauseType.FORBIDDEN
    ),
    Case(
        68,
        "another directory",
        _host(path="/etc/passwd"),
        _VOLUME,
        "none of the directories",
        _host(),
        settings=_ALLOWED,
        cause=CauseType.FORBIDDEN,
    ),
    Case(
        68,
        "detour",
        _host(path="/var/data/../../etc/passwd"),
        _VOLUME,
        "none of the directories",
        _host(),
        settings=_ALLOWED,
        cause=CauseType.FORBIDDEN,
    ),
    Case(
        68,
        "a name that begins alike",
        _host(path="/var/database/a.img"),
        _VOLUME,
        "none of the directories",
        _host(),
        settings=_ALLOWED,
        cause=CauseType.FORBIDDEN,
    ),
    Case(68, "no path", _host(path=""), f"{_VOLUME}.hostDisk.path", "Required value", _host(), settings=_ALLOWED, cause=CauseType.REQUIRED),
    Case(
        68,
        "type",
        _host(type="File"),
        f"{_VOLUME}.hostDisk.type",
        'Unsupported value: "File"',
        _host(),
        settings=_ALLOWED,
        cause=CauseType.NOT_SUPPORTED,
    ),
    Case(
        68,
        "capacity",
        _host(capacity="1Gi"),
        f"{_VOLUME}.hostDisk.capacity",
        "DiskOrCreate",
        _host(type="DiskOrCreate", capacity="1Gi"),
        settings=_ALLOWED,
    ),
    *(
        Case(
            69,
            kind,
            volume(**{kind: {}}),
            f"{_VOLUME}.{kind}.{member}",
            "Required value",
            volume(**{kind: {member: "x"}}),
            cause=CauseType.REQUIRED,
        )
        for kind, member in (("configMap", "name"), ("secret", "secretName"), ("serviceAccount", "serviceAccountName"))
    ),
    Case(
        70,
        "service account",
        _two(serviceAccount={"serviceAccountName": "x"}),
        "P.volumes",
        "max one serviceAccount",
        volume(serviceAccount={"serviceAccountName": "x"}),
    ),
    Case(
        70,
        "metrics",
        _two(downwardMetrics={}),
        "P.volumes",
        "max one downwardMetrics",
        volume(downwardMetrics={}),
        settings={"gates": frozenset({"DownwardMetrics"})},
    ),
    Case(70, "memory dump", _two(memoryDump={"claimName": "x"}), "P.volumes", "max one memoryDump", volume(memoryDump={"claimName": "x"})),
    Case(71, "no type", {"P.accessCredentials": [{}]}, "P.accessCredentials[0]", "exactly one access credential type", _password()),
    Case(
        71,
        "two types",
        {"P.accessCredentials": [{**_password()["P.accessCredentials"][0], **_key()["P.accessCredentials"][0]}], **_NO_CLOUD},
        "P.accessCredentials[0]",
        "exactly one access credential type",
        {**_key(), **_NO_CLOUD},
    ),
    Case(71, "no source", {**_key(source={}), **_NO_CLOUD}, f"{_KEY}.source", "exactly one source", {**_key(), **_NO_CLOUD}),
    Case(
        71, "no method", _key(propagationMethod={}), f"{_KEY}.propagationMethod", "exactly one propagationMethod", {**_key(), **_NO_CLOUD}
    ),
    Case(
        71,
        "two methods",
        {**_key(propagationMethod={"noCloud": {}, "qemuGuestAgent": {"users": ["x"]}}), **_NO_CLOUD},
        f"{_KEY}.propagationMethod",
        "exactly one propagationMethod",
        {**_key(), **_NO_CLOUD},
    ),
    Case(
        71,
        "no method for a password",
        _password(propagationMethod={}),
        "P.accessCredentials[0].userPassword.propagationMethod",
        "exactly one propagationMethod",
        _password(),
    ),
    Case(72, "noCloud", _key(), f"{_KEY}.propagationMethod", "cloudInitNoCloud", {**_key(), **_NO_CLOUD}),
    Case(
        72,
        "configDrive",
        {**_key(propagationMethod={"configDrive": {}}), **_NO_CLOUD},
        f"{_KEY}.propagationMethod",
        "cloudInitConfigDrive",
        {**_key(propagationMethod={"configDrive": {}}), **_DRIVE},
    ),
    Case(
        72,
        "no users",
        _key(propagationMethod={"qemuGuestAgent": {"users": []}}),
        f"{_KEY}.propagationMethod.qemuGuestAgent.users",
        "at least one user",
        _key(propagationMethod={"qemuGuestAgent": {"users": ["fedora"]}}),
        cause=CauseType.REQUIRED,
    ),
)
