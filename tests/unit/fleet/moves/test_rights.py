"""The rights to read exports of a cluster, and the ways that need none."""

from typing import Any

import pytest

from paddock.fleet.moves import rights
from paddock.fleet.moves.plan.moveplan import Hindrance
from tests.coroutines import played_by
from tests.unit.fleet.moves.clusters import FakeCluster
from tests.unit.kubernetes.client.talking import play

Data = dict[str, Any]
INSTALLED = "/apis/kubevirt.io/v1/kubevirts"
INGRESSES = "/apis/networking.k8s.io/v1/namespaces/virt/ingresses"
ROUTES = "/apis/route.openshift.io/v1/namespaces/virt/routes"


NETWORKING = "/apis/networking.k8s.io/v1"


def served(*plurals: str) -> Data:
    return {"resources": [{"name": each} for each in plurals]}


def listed(*items: Data) -> Data:
    return {"metadata": {}, "items": [{"metadata": {"name": "x", "namespace": "virt"}, **each} for each in items]}


def ingress(service: str) -> Data:
    backend = {"service": {"name": service, "port": {"number": 443}}}
    return {"spec": {"rules": [{"host": "x", "http": {"paths": [{"path": "/", "backend": backend}]}}]}}


def usual(service: str) -> Data:
    return {"spec": {"defaultBackend": {"service": {"name": service}}}}


def route(service: str) -> Data:
    return {"spec": {"to": {"kind": "Service", "name": service}}}


LACKING = "you may not create pods/portforward in namespace default at the source, where the move reads disks through a forwarded port"


@pytest.mark.parametrize(
    ("refused", "lists", "forbidden", "said", "is_certain"),
    [
        ((), {}, (), "", True),
        (("create pods/portforward",), {INGRESSES: listed()}, (), f"{LACKING}; ask for the right", True),
        (("create pods/portforward",), {INGRESSES: listed(ingress("virt-exportproxy"))}, (), "", True),
        (("create pods/portforward",), {INGRESSES: listed(usual("virt-exportproxy"))}, (), "", True),
        (("create pods/portforward",), {INGRESSES: listed(usual("virt-api"))}, (), LACKING, True),
        (("create pods/portforward",), {ROUTES: listed(route("virt-exportproxy"))}, (INGRESSES,), "", True),
        # A server tells a user without rights nothing of a kind that it lacks.
        (("create pods/portforward",), {INGRESSES: listed()}, (ROUTES,), f"{LACKING}; ask for the right", True),
        (
            ("create pods/portforward",),
            {NETWORKING: served("ingresses")},
            (INGRESSES,),
            f"{LACKING} unless an Ingress or a Route leads to virt-exportproxy",
            False,
        ),
        (("get pods/portforward", "list pods"), {}, (), "you may not list pods; you may not get pods/portforward in namespace", True),
    ],
)
@played_by(play)
async def test_the_way_to_exports_is_known_before_anything_happens(
    refused: tuple[str, ...], lists: dict[str, Data], forbidden: tuple[str, ...], said: str, is_certain: bool
) -> None:
    cluster = FakeCluster()
    cluster.objects = {"/version": {"gitVersion": "v1.36.0"}, INSTALLED: listed({}), **lists}
    cluster.refused, cluster.forbidden = set(refused), set(forbidden)
    found: list[Hindrance] = []
    async with cluster.side() as side:
        found.append(await rights.shut_exports(side))
    assert all(each.text.startswith(said) and bool(each.text) is bool(said) and each.is_certain is is_certain for each in found), found


@played_by(play)
async def test_paddock_up_needs_no_ports_of_pods() -> None:
    cluster = FakeCluster()
    cluster.objects = {"/version": {"gitVersion": "v1.36.0+paddock.0.1.0"}}
    async with cluster.side() as side:
        assert await rights.shut_exports(side) == Hindrance()
