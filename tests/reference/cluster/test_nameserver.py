"""The names that the name server of the reference cluster knows."""

from typing import Any

from tests.reference.cluster.nameserver import names


def _service(name: str, address: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "shop"}, "spec": {"clusterIP": address}}


def _slice(service: str, *endpoints: dict[str, Any]) -> dict[str, Any]:
    labels = {"kubernetes.io/service-name": service}
    return {"metadata": {"name": f"{service}-1", "namespace": "shop", "labels": labels}, "endpoints": list(endpoints)}


def test_service_has_its_own_address() -> None:
    """The endpoints behind it are reached by kube-proxy."""
    found = names([_service("web", "10.96.1.1")], [_slice("web", {"addresses": ["10.244.0.9"]})])
    assert found == {"web.shop.svc.cluster.local": ["10.96.1.1"]}


def test_headless_service_has_those_of_its_ready_endpoints() -> None:
    """One with a host name has a name of its own, too."""
    ready = {"addresses": ["10.244.0.9"], "hostname": "first", "conditions": {"ready": True}}
    unready = {"addresses": ["10.244.0.8"], "conditions": {"ready": False}}
    found = names([_service("db", "None")], [_slice("db", ready, unready)])
    assert found == {"db.shop.svc.cluster.local": ["10.244.0.9"], "first.db.shop.svc.cluster.local": ["10.244.0.9"]}
