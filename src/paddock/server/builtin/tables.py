"""Built-in kinds as rows of a table, where a cell is more than the value at a path (docs/spec/kube-api.md section 2.2)."""

from collections.abc import Callable, Iterable
from typing import Any

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import ages

Cells = Callable[[Data, float], list[Any]]
UNKNOWN, NONE = "<unknown>", "<none>"
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_ROLE = "node-role.kubernetes.io/"
_MOST_SHOWN = 3


def age_of(data: Data, now: float) -> str:
    """Return the age of an object."""
    return _ago(data["metadata"].get("creationTimestamp"), now)


def _ago(time: str | None, now: float) -> str:
    return ages.age(time, now) if time else UNKNOWN


def name_of(data: Data) -> str:
    """The name of an object."""
    return str(data["metadata"]["name"])


def _joined(parts: Iterable[Any], empty: str = NONE) -> str:
    return ",".join(str(part) for part in parts) or empty


def _shortened(parts: list[str]) -> str:
    """The first few, and how many more there are."""
    more = len(parts) - _MOST_SHOWN
    return _joined(parts[:_MOST_SHOWN]) + (f" + {more} more..." if more > 0 else "")


def _secret(data: Data, now: float) -> list[Any]:
    return [name_of(data), data.get("type", ""), len(data.get("data") or ()), age_of(data, now)]


def _config_map(data: Data, now: float) -> list[Any]:
    return [name_of(data), len(data.get("data") or ()) + len(data.get("binaryData") or ()), age_of(data, now)]


def _lease(data: Data, now: float) -> list[Any]:
    return [name_of(data), (data.get("spec") or {}).get("holderIdentity") or "", age_of(data, now)]


def _event(data: Data, now: float) -> list[Any]:
    """An event of either shape."""
    about = data.get("involvedObject") or data.get("regarding") or {}
    source = data.get("source") or data.get("deprecatedSource") or {}
    series = data.get("series") or {}
    first = data.get("firstTimestamp") or data.get("deprecatedFirstTimestamp") or data.get("eventTime")
    last = series.get("lastObservedTime") or data.get("lastTimestamp") or data.get("deprecatedLastTimestamp") or first
    target = f"{about.get('kind', '').lower()}/{about.get('name', '')}" if about.get("name") else about.get("kind", "").lower()
    recorder = [each for each in (source.get("component"), source.get("host")) if each]
    return [
        _ago(last, now),
        data.get("type", ""),
        data.get("reason", ""),
        target,
        about.get("fieldPath", ""),
        ", ".join(recorder) or data.get("reportingComponent") or data.get("reportingController") or "",
        str(data.get("message") or data.get("note") or "").strip(),
        _ago(first, now),
        series.get("count") or data.get("count") or data.get("deprecatedCount") or 1,
        name_of(data),
    ]


_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _modes(modes: Iterable[str] | None) -> str:
    found = set(modes or ())
    return ",".join(short for mode, short in _MODES.items() if mode in found)


def _claim(data: Data, now: float) -> list[Any]:
    spec, status = data.get("spec") or {}, data.get("status") or {}
    phase = "Terminating" if data["metadata"].get("deletionTimestamp") else status.get("phase", "")
    bound = bool(spec.get("volumeName"))
    return [
        name_of(data),
        phase,
        spec.get("volumeName", ""),
        str((status.get("capacity") or {}).get("storage", "")) if bound else "",
        _modes(status.get("accessModes")) if bound else "",
        spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or "<unset>",
        age_of(data, now),
        spec.get("volumeMode") or "<unset>",
    ]


def _volume(data: Data, now: float) -> list[Any]:
    spec, status = data.get("spec") or {}, data.get("status") or {}
    claim = spec.get("claimRef") or {}
    return [
        name_of(data),
        str((spec.get("capacity") or {}).get("storage", "")),
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        "Terminating" if data["metadata"].get("deletionTimestamp") else status.get("phase", ""),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or "<unset>",
        status.get("reason", ""),
        age_of(data, now),
        spec.get("volumeMode") or "<unset>",
    ]


def _storage_class(data: Data, now: float) -> list[Any]:
    default = (data["metadata"].get("annotations") or {}).get(_DEFAULT_CLASS) == "true"
    return [
        name_of(data) + (" (default)" if default else ""),
        data.get("provisioner", ""),
        data.get("reclaimPolicy", "Delete"),
        data.get("volumeBindingMode", "Immediate"),
        bool(data.get("allowVolumeExpansion")),
        age_of(data, now),
    ]


def _outside(spec: Data, status: Data) -> str:
    """Return the addresses of a Service outside the cluster."""
    given = list(spec.get("externalIPs") or ())
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName", ""))
    if spec.get("type") == "LoadBalancer":
        ingress = (status.get("loadBalancer") or {}).get("ingress") or ()
        found = [each.get("ip") or each.get("hostname") or "" for each in ingress]
        return _joined([*found, *given], "<pending>")
    return _joined(given)


def _service(data: Data, now: float) -> list[Any]:
    spec, status = data.get("spec") or {}, data.get("status") or {}
    ports = [
        f"{port['port']}:{port['nodePort']}/{port.get('protocol', 'TCP')}"
        if port.get("nodePort")
        else f"{port['port']}/{port.get('protocol', 'TCP')}"
        for port in spec.get("ports") or ()
    ]
    selector = _joined(f"{key}={value}" for key, value in sorted((spec.get("selector") or {}).items()))
    address = spec.get("clusterIP") or NONE
    return [name_of(data), spec.get("type", ""), address, _outside(spec, status), _joined(ports), age_of(data, now), selector]


def _hosted(address: str, port: Any) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _endpoints(data: Data, now: float) -> list[Any]:
    found: list[str] = []
    for subset in data.get("subsets") or ():
        for port in subset.get("ports") or (None,):
            addresses = [each["ip"] for each in subset.get("addresses") or ()]
            found.extend(_hosted(each, port["port"]) if port else each for each in addresses)
    return [name_of(data), _shortened(found), age_of(data, now)]


def _slice(data: Data, now: float) -> list[Any]:
    ports = [str(port.get("port", "*")) for port in data.get("ports") or ()]
    addresses = [address for each in data.get("endpoints") or () for address in each.get("addresses") or ()]
    return [
        name_of(data),
        data.get("addressType", ""),
        _shortened(ports) if ports else "<unset>",
        _endpoint_text(addresses),
        age_of(data, now),
    ]


def _endpoint_text(addresses: list[str]) -> str:
    return _shortened(addresses) if addresses else "<unset>"


def _node(data: Data, now: float) -> list[Any]:
    spec, status = data.get("spec") or {}, data.get("status") or {}
    ready = next((each.get("status") for each in status.get("conditions") or () if each.get("type") == "Ready"), None)
    state = {"True": "Ready", None: "Unknown"}.get(ready, "NotReady")
    state += ",SchedulingDisabled" if spec.get("unschedulable") else ""
    roles = sorted(label[len(_ROLE) :] for label in data["metadata"].get("labels") or () if label.startswith(_ROLE) and label != _ROLE)
    info = status.get("nodeInfo") or {}

    def address(kind: str) -> str:
        return next((each["address"] for each in status.get("addresses") or () if each.get("type") == kind), NONE)

    return [
        name_of(data),
        state,
        _joined(roles),
        age_of(data, now),
        info.get("kubeletVersion", ""),
        address("InternalIP"),
        address("ExternalIP"),
        info.get("osImage") or UNKNOWN,
        info.get("kernelVersion") or UNKNOWN,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _binding(data: Data, now: float) -> list[Any]:
    role = data.get("roleRef") or {}

    def of(kind: str) -> str:
        return ", ".join(
            f"{each.get('namespace', '')}/{each['name']}" if kind == "ServiceAccount" else each["name"]
            for each in data.get("subjects") or ()
            if each.get("kind") == kind
        )

    return [
        name_of(data),
        f"{role.get('kind', '')}/{role.get('name', '')}",
        age_of(data, now),
        of("User"),
        of("Group"),
        of("ServiceAccount"),
    ]


_RBAC = "rbac.authorization.k8s.io"
CELLS: dict[tuple[str, str], Cells] = {
    ("", "Secret"): _secret,
    ("", "ConfigMap"): _config_map,
    ("", "Event"): _event,
    ("events.k8s.io", "Event"): _event,
    ("coordination.k8s.io", "Lease"): _lease,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "PersistentVolume"): _volume,
    ("storage.k8s.io", "StorageClass"): _storage_class,
    ("", "Service"): _service,
    ("", "Endpoints"): _endpoints,
    ("discovery.k8s.io", "EndpointSlice"): _slice,
    ("", "Node"): _node,
    (_RBAC, "RoleBinding"): _binding,
    (_RBAC, "ClusterRoleBinding"): _binding,
}
