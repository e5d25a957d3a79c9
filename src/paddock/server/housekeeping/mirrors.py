"""EndpointSlices that mirror the Endpoints somebody wrote by hand, and those of a Service that leads nowhere yet. Pure."""

import hashlib
import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any

from paddock.base.jsondata import Data

SERVICE = "kubernetes.io/service-name"
MANAGER = "endpointslice.kubernetes.io/managed-by"
MIRRORING = "endpointslicemirroring-controller.k8s.io"
SELECTING = "endpointslice-controller.k8s.io"
_SKIP = "endpointslice.kubernetes.io/skip-mirror"
_LEADER = "control-plane.alpha.kubernetes.io/leader"
_NOT_COPIED = ("endpoints.kubernetes.io/last-change-trigger-time", "kubectl.kubernetes.io/last-applied-configuration")
_HEADLESS = "service.kubernetes.io/headless"
# As upstream's --mirroring-max-endpoints-per-subset.
_MOST = 1000
# family, then name, protocol, number and application protocol of each port
Shape = tuple[str, tuple[tuple[str, str, int, str], ...]]


def is_mirrored(endpoints: Data) -> bool:
    """Return False for Endpoints that ask not to be mirrored and for those that elect a leader."""
    meta = endpoints["metadata"]
    return (meta.get("labels") or {}).get(_SKIP) != "true" and _LEADER not in (meta.get("annotations") or {})


def mirrored(endpoints: Data) -> dict[Shape, Data]:
    """Return the slices of an Endpoints object by their shape, each without a name of its own choice."""
    found: dict[Shape, list[Data]] = {}
    for subset in endpoints.get("subsets") or ():
        ports = tuple(sorted(_port(each) for each in subset.get("ports") or ()))
        listed = [(each, ready) for key, ready in (("addresses", True), ("notReadyAddresses", False)) for each in subset.get(key) or ()]
        for address, ready in listed[:_MOST]:
            version = ipaddress.ip_address(address["ip"]).version
            found.setdefault((f"IPv{version}", ports), []).append(_endpoint(address, ready=ready))
    return {shape: _slice(endpoints, shape, each) for shape, each in found.items()}


def shape_of(existing: Data) -> Shape:
    """Return the family and the ports of a slice."""
    return existing.get("addressType", ""), tuple(sorted(_port(each) for each in existing.get("ports") or ()))


def placeholders(service: Data) -> Iterator[Data]:
    """Return an empty slice for each family of a Service that no endpoint is known for."""
    meta, spec = service["metadata"], service.get("spec") or {}
    labels = {**(meta.get("labels") or {}), SERVICE: meta["name"], MANAGER: SELECTING, **_headless(spec)}
    for family in spec.get("ipFamilies") or ("IPv4",):
        yield {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"namespace": meta.get("namespace"), "name": f"{meta['name']}-{_mark(family, ())}", "labels": labels},
            "addressType": family,
            "endpoints": [],
            "ports": [],
        }


def empty(service: Data) -> Data:
    """Return the Endpoints of a Service that no endpoint is known for."""
    meta, spec = service["metadata"], service.get("spec") or {}
    labels = {**(meta.get("labels") or {}), "endpoints.kubernetes.io/managed-by": "endpoint-controller", **_headless(spec)}
    return {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": meta["name"], "labels": labels}}


def _headless(spec: Mapping[str, Any]) -> dict[str, str]:
    return {_HEADLESS: ""} if spec.get("clusterIP") in (None, "", "None") else {}


def _mark(family: str, ports: object) -> str:
    return hashlib.sha256(repr((family, ports)).encode()).hexdigest()[:5]


def _port(port: Data) -> tuple[str, str, int, str]:
    return port.get("name") or "", port.get("protocol") or "TCP", port.get("port") or 0, port.get("appProtocol") or ""


def _endpoint(address: Data, *, ready: bool) -> Data:
    kept = {key: address[key] for key in ("hostname", "nodeName", "targetRef") if address.get(key)}
    return {"addresses": [str(ipaddress.ip_address(address["ip"]))], "conditions": {"ready": ready}, **kept}


def _slice(endpoints: Data, shape: Shape, listed: list[Data]) -> Data:
    family, ports = shape
    meta = endpoints["metadata"]
    owner = {"apiVersion": "v1", "kind": "Endpoints", "name": meta["name"], "uid": meta["uid"]}
    annotations = {key: value for key, value in (meta.get("annotations") or {}).items() if key not in _NOT_COPIED}
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": f"{meta['name']}-{_mark(family, ports)}",
            "labels": {**(meta.get("labels") or {}), SERVICE: meta["name"], MANAGER: MIRRORING},
            **({"annotations": annotations} if annotations else {}),
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
        "addressType": family,
        "endpoints": listed,
        "ports": [
            {"name": name, "protocol": protocol, "port": number, **({"appProtocol": spoken} if spoken else {})}
            for name, protocol, number, spoken in ports
        ],
    }
