"""The moves of users with VirtRigaud's machines, for trials."""

from typing import Any

import msgspec

from paddock.base.jsondata import Data
from tests.scenario.fronts.stormyprovider import RigaudWeather
from tests.scenario.fronts.trial import Dialect, Move, merge, outside, put, remove

_API = "infra.virtrigaud.io/v1beta1"
_ALL, _V = f"/apis/{_API}", f"/apis/{_API}/namespaces/default"
_MACHINES, _CLASSES, _IMAGES = f"{_V}/virtualmachines", f"{_V}/vmclasses", f"{_V}/vmimages"
_NETWORKS, _PROVIDERS, _SECRETS = f"{_V}/vmnetworkattachments", f"{_V}/providers", "/api/v1/namespaces/default/secrets"

_FLEETING = ("id", "consoleURL", "provider", "lastReconfigureTime", "snapshots")
_ONCE = ("VMSnapshot", "VMClone", "VMMigration")


def _object(kind: str, name: str, spec: Data) -> Data:
    return {"apiVersion": _API, "kind": kind, "metadata": {"name": name}, "spec": spec}


_PROVIDER = _object(
    "Provider",
    "lab",
    {
        "type": "libvirt",
        "endpoint": "qemu+ssh://root@lab/system",
        "credentialSecretRef": {"name": "lab"},
        "runtime": {"image": "example/provider:1"},
        # The time of a check would never rest.
        "healthCheck": {"interval": "4h", "successThreshold": 1},
    },
)
_HOT = {"cpuHotAddEnabled": True, "memoryHotAddEnabled": True}
_CLASS = _object("VMClass", "small", {"cpu": 2, "memory": "4Gi", "performanceProfile": _HOT})
_IMAGE = _object("VMImage", "cloud", {"source": {"libvirt": {"url": "https://images.example/cloud.qcow2"}}})
_LAN = _object("VMNetworkAttachment", "lan", {"network": {"libvirt": {"networkName": "default"}}})
_SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "told"}, "stringData": {"userdata": "#cloud-config\nhostname: web\n"}}
_SPEC = {
    "providerRef": {"name": "lab"},
    "classRef": {"name": "small"},
    "imageRef": {"name": "cloud"},
    "networks": [{"name": "lan", "networkRef": {"name": "lan"}}],
    "userData": {"cloudInit": {"secretRef": {"name": "told"}}},
    "lifecycle": {"gracefulShutdownTimeout": "20s"},
}
_WEB = _object("VirtualMachine", "web", {**_SPEC, "disks": [{"name": "data", "sizeGiB": 10}]})
_OTHER = _object("VirtualMachine", "other", {**_SPEC, "powerState": "Off"})
_GREETING = {"httpGet": {"port": 80, "path": "/"}}


def _web(**spec: Any) -> Move:
    return merge(f"{_MACHINES}/web", {"spec": spec})


def _lasting(found: Data) -> Data:
    """An object of VirtRigaud without ids, counts and the story of its conditions."""
    if not found.get("apiVersion", "").startswith("infra.virtrigaud.io/"):
        return found
    status = dict(found.get("status") or {})
    status["current"] = status.pop("observedGeneration", None) == found["metadata"].get("generation")
    conditions = status.pop("conditions", None) or ()
    # What is over may have left a record or not.
    status["conditions"] = {each["type"]: each["reason"] for each in conditions if each["status"] == "True" or each["type"] == "Ready"}
    for each in ("PostStart", "PreStop", "PowerTransition"):
        status["conditions"].pop(each, None)
    if found["kind"] in _ONCE:
        # It is done once, and the storm may have made it impossible; whatever it left is judged at the hypervisor.
        return {"name": found["metadata"]["name"], "settled": status.get("phase") in ("Ready", "Failed")}
    if found["kind"] == "VMImage":
        # Without a machine, chance decides whether it was prepared before; with one, the machine shows it. What it names must be done.
        done = status.get("phase") in ("Ready", "Pending") and "prepareTaskRef" not in status
        return {**found, "status": {"done": done, "current": status["current"]}}
    if found["kind"] == "VMPlacementPolicy":
        # How often a machine was placed depends on what the provider lost.
        status.pop("placementStats", None)
        status.pop("validationResults", None)
    if found["kind"] == "VMSet":
        status = {name: status.get(name) for name in ("replicas", "readyReplicas", "updatedReplicas", "conditions", "current")}
    if found["kind"] == "VirtualMachine":
        found["metadata"].get("labels", {}).pop("virtrigaud.io/set-revision", None)
        status = {name: value for name, value in status.items() if name not in _FLEETING}
        status["ips"] = len(status.get("ips") or ())
    for name in ("lastPrepareTime", "lastHealthCheck"):
        status.pop(name, None)
    for each in status.get("providerStatus", {}).values():
        each.pop("id", None)
    return {**found, "status": status}


VIRTRIGAUD = Dialect(
    wire=lambda front, back, weather: weather.wire(front),
    outside=RigaudWeather,
    settled_seconds=2000.0,
    setting=(
        put(_PROVIDERS, _PROVIDER),
        put(_CLASSES, _CLASS),
        put(_IMAGES, _IMAGE),
        put(_NETWORKS, _LAN),
        put(_SECRETS, _SECRET),
        put(_MACHINES, _WEB),
    ),
    moves=(
        put(_MACHINES, _WEB),
        put(_MACHINES, _OTHER),
        remove(f"{_MACHINES}/web"),
        remove(f"{_MACHINES}/other"),
        _web(powerState="Off"),
        _web(powerState="OffGraceful"),
        _web(powerState="On"),
        _web(resources={"cpu": 4}),
        _web(resources={"cpu": 3, "memoryMiB": 8192}),
        _web(resources=None),
        _web(disks=[{"name": "data", "sizeGiB": 20, "expandPolicy": "Online"}, {"name": "more", "sizeGiB": 1}]),
        _web(disks=None),
        _web(tags=["a"]),
        _web(lifecycle={"postStart": _GREETING, "preStop": _GREETING}),
        _web(lifecycle={"postStart": None, "preStop": None}),
        _web(providerRef={"name": "lab"}, imageRef={"name": "absent"}),
        merge(f"{_MACHINES}/web", {"metadata": {"annotations": {"virtrigaud.io/allow-restart": "true"}}}),
        merge(f"{_MACHINES}/web", {"metadata": {"labels": {"team": "a"}}}),
        merge(f"{_CLASSES}/small", {"spec": {"cpu": 3}}),
        merge(f"{_CLASSES}/small", {"spec": {"memory": "6Gi"}}),
        remove(f"{_CLASSES}/small"),
        put(_CLASSES, _CLASS),
        remove(f"{_IMAGES}/cloud"),
        put(_IMAGES, _IMAGE),
        merge(f"{_IMAGES}/cloud", {"spec": {"source": {"libvirt": {"url": "https://images.example/newer.qcow2"}}}}),
        remove(f"{_NETWORKS}/lan"),
        put(_NETWORKS, _LAN),
        remove(f"{_SECRETS}/told"),
        merge(f"{_SECRETS}/told", {"stringData": {"userdata": "#cloud-config\nhostname: another\n"}}),
        remove(f"{_PROVIDERS}/lab"),
        outside("vanish web"),
        outside("power web Off"),
        outside("power web Suspended"),
        outside("power other On"),
    ),
    mending=(
        put(_CLASSES, _CLASS),
        put(_IMAGES, _IMAGE),
        put(_NETWORKS, _LAN),
        put(_SECRETS, _SECRET),
        merge(f"{_MACHINES}/web", {"metadata": {"annotations": {"virtrigaud.io/allow-restart": "true"}}}),
        merge(f"{_MACHINES}/other", {"metadata": {"annotations": {"virtrigaud.io/allow-restart": "true"}}}),
        _web(imageRef={"name": "cloud"}, disks=[{"name": "data", "sizeGiB": 40, "expandPolicy": "Online"}]),
    ),
    # Refusals wait for a change.
    epilogue=(
        merge(f"{_IMAGES}/cloud", {"spec": {"prepare": {"retries": 7}}}),
        _web(tags=["nudged"]),
        merge(f"{_MACHINES}/other", {"spec": {"tags": ["nudged"]}}),
    ),
    lasting=_lasting,
    kinds=tuple(f"{_ALL}/{kind}" for kind in ("virtualmachines", "vmclasses", "vmimages", "vmnetworkattachments", "providers")),
)

_SETS, _CLONES, _SNAPSHOTS = f"{_V}/vmsets", f"{_V}/vmclones", f"{_V}/vmsnapshots"
_TEMPLATE = {**_SPEC, "disks": [{"name": "data", "sizeGiB": 1}]}
_CREW = _object(
    "VMSet",
    "crew",
    {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "crew"}},
        "template": {"metadata": {"labels": {"app": "crew"}}, "spec": _TEMPLATE},
    },
)
_COPY = _object(
    "VMClone",
    "copy",
    {
        "source": {"vmRef": {"name": "web"}},
        "target": {"name": "twin"},
        "options": {"powerOn": True, "timeout": "20m", "retryPolicy": {"maxRetries": 2, "retryDelay": "10s"}},
    },
)
_SNAPSHOT = _object("VMSnapshot", "before", {"vmRef": {"name": "web"}})
_OTHER_LAB = {**_PROVIDER, "metadata": {"name": "other"}}
_MOVE = _object(
    "VMMigration",
    "move",
    {
        "source": {"vmRef": {"name": "web"}},
        "target": {"name": "moved", "providerRef": {"name": "other"}, "classRef": {"name": "small"}},
        "options": {"retryPolicy": {"maxRetries": 2}},
    },
)
_POLICY = _object("VMPlacementPolicy", "stores", {"hard": {"datastores": ["fast", "slow"]}, "soft": {"datastores": ["slow"]}})
_PLACED = _object("VirtualMachine", "placed", {**_SPEC, "placementRef": {"name": "stores"}, "powerState": "Off"})
_LATER = _object("VMSnapshot", "later", {"vmRef": {"name": "web"}, "retentionPolicy": {"maxCount": 1}})


def _crew(**spec: Any) -> Move:
    return merge(f"{_SETS}/crew", {"spec": spec})


_MIGRATIONS, _POLICIES = f"{_V}/vmmigrations", f"{_V}/vmplacementpolicies"

# Sets keep machines, policies place one; snapshots, clones and migrations are made once.
VIRTRIGAUD_OPERATIONS = msgspec.structs.replace(
    VIRTRIGAUD,
    setting=(*VIRTRIGAUD.setting, put(_PROVIDERS, _OTHER_LAB), put(_SETS, _CREW), put(_POLICIES, _POLICY)),
    moves=(
        put(_SETS, _CREW),
        remove(f"{_SETS}/crew"),
        _crew(replicas=0),
        _crew(replicas=3),
        _crew(replicas=1, podManagementPolicy="Parallel"),
        _crew(template={"spec": {"resources": {"cpu": 4}}}),
        _crew(template={"spec": {"tags": ["a"]}}),
        _crew(template={"spec": {"powerState": "Off"}}),
        _crew(updateStrategy={"type": "Recreate"}),
        _crew(updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}),
        remove(f"{_MACHINES}/crew-0"),
        outside("vanish crew-1"),
        outside("power crew-0 Off"),
        put(_CLONES, _COPY),
        remove(f"{_CLONES}/copy"),
        remove(f"{_MACHINES}/twin"),
        put(_MIGRATIONS, _MOVE),
        remove(f"{_MIGRATIONS}/move"),
        put(_SNAPSHOTS, _SNAPSHOT),
        remove(f"{_SNAPSHOTS}/before"),
        put(_SNAPSHOTS, _LATER),
        _web(snapshot={"revertToRef": {"name": "before"}}),
        _web(snapshot=None),
        _web(powerState="Off"),
        _web(powerState="On"),
        put(_MACHINES, _WEB),
        remove(f"{_MACHINES}/web"),
        outside("vanish web"),
        put(_MACHINES, _PLACED),
        remove(f"{_MACHINES}/placed"),
        remove(f"{_POLICIES}/stores"),
        put(_POLICIES, _POLICY),
        merge(f"{_POLICIES}/stores", {"spec": {"hard": {"excludedDatastores": ["slow", "fast"]}}}),
        merge(f"{_POLICIES}/stores", {"spec": {"hard": {"excludedDatastores": ["fast"]}}}),
        remove(f"{_IMAGES}/cloud"),
        merge(f"{_CLASSES}/small", {"spec": {"cpu": 3}}),
    ),
    mending=(
        *VIRTRIGAUD.mending,
        _web(snapshot=None),
        put(_POLICIES, _POLICY),
        merge(f"{_POLICIES}/stores", {"spec": {"hard": {"excludedDatastores": None}}}),
    ),
    epilogue=(
        *VIRTRIGAUD.epilogue,
        _crew(template={"metadata": {"annotations": {"virtrigaud.io/allow-restart": "true"}}, "spec": {"tags": ["nudged"]}}),
        remove(f"{_CLONES}/copy"),
        remove(f"{_MACHINES}/twin"),
        remove(f"{_MIGRATIONS}/move"),
        remove(f"{_MACHINES}/moved"),
        remove(f"{_SNAPSHOTS}/before"),
        remove(f"{_SNAPSHOTS}/later"),
    ),
    settled_seconds=4000.0,
    kinds=(
        *VIRTRIGAUD.kinds,
        f"{_ALL}/vmsets",
        f"{_ALL}/vmclones",
        f"{_ALL}/vmsnapshots",
        f"{_ALL}/vmmigrations",
        f"{_ALL}/vmplacementpolicies",
    ),
)
