"""Ingresses are kept for controllers from outside; what leads nowhere is refused."""

from typing import Any

import pytest

from tests.coroutines import played
from tests.kit.servers.apiharness import Harness

PLACE = "/apis/networking.k8s.io/v1/namespaces/default/ingresses"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
SERVICE = {"service": {"name": "s", "port": {"number": 80}}}


def rule(**path: Any) -> dict[str, Any]:
    return {"rules": [{"host": "a.example", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": SERVICE, **path}]}}]}


@played
async def test_an_ingress_is_kept_and_shown(api: Harness, /) -> None:
    made = await api.post(PLACE, {"metadata": {"name": "i"}, "spec": rule() | {"ingressClassName": "c", "tls": [{"secretName": "t"}]}})
    assert (made.status, made.data["status"], made.data["metadata"]["generation"]) == (201, {"loadBalancer": {}}, 1)
    status = {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}, {"hostname": "b"}]}}}
    assert (await api.merge(f"{PLACE}/i/status", status)).status == 200
    table = (await api.get(PLACE, accept=TABLE)).data
    assert [each["name"] for each in table["columnDefinitions"]] == ["Name", "Class", "Hosts", "Address", "Ports", "Age"]
    assert table["rows"][0]["cells"][:5] == ["i", "c", "a.example", "192.0.2.1,b", "80, 443"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({}, "spec"),
        (rule(path="a"), "spec.rules[0].http.paths[0].path"),
        (rule(path="/a//b"), "spec.rules[0].http.paths[0].path"),
        (rule(pathType="Other"), "spec.rules[0].http.paths[0].pathType"),
        (rule(backend={}), "spec.rules[0].http.paths[0].backend"),
        (rule(backend=SERVICE | {"resource": {"kind": "K", "name": "n"}}), "spec.rules[0].http.paths[0].backend"),
        ({"defaultBackend": {"service": {"name": "s"}}}, "spec.defaultBackend.service.port"),
        ({"defaultBackend": {"service": {"name": "s", "port": {"name": "a", "number": 1}}}}, "spec.defaultBackend.service.port"),
        ({"rules": [{"http": {"paths": []}}]}, "spec.rules[0].http.paths"),
    ],
)
@played
async def test_what_leads_nowhere_is_refused(api: Harness, /, spec: dict[str, Any], field: str) -> None:
    refused = await api.post(PLACE, {"metadata": {"name": "i"}, "spec": spec})
    assert (refused.status, list(refused.causes)) == (422, [field]), refused.data


@pytest.mark.spec("kube-api", 142)
@played
async def test_an_ingress_without_a_class_gets_the_default_one(api: Harness, /) -> None:
    def ingress(name: str, **meta: Any) -> dict[str, Any]:
        backend = {"service": {"name": "s", "port": {"number": 80}}}
        return {"metadata": {"name": name, **meta}, "spec": {"defaultBackend": backend}}

    async def made(name: str, default: str) -> None:
        mark = {"ingressclass.kubernetes.io/is-default-class": default}
        body = {"metadata": {"name": name, "annotations": mark}, "spec": {"controller": "example.com/c"}}
        assert (await api.post("/apis/networking.k8s.io/v1/ingressclasses", body)).status == 201

    path = "/apis/networking.k8s.io/v1/namespaces/default/ingresses"
    await made("other", "false")
    assert "ingressClassName" not in (await api.post(path, ingress("none"))).data["spec"]
    await made("old", "true")
    api.clock.time += 10
    await made("new-b", "true")
    await made("new-a", "true")
    assert (await api.post(path, ingress("defaulted"))).data["spec"]["ingressClassName"] == "new-a"
    marked = ingress("marked", annotations={"kubernetes.io/ingress.class": "x"})
    assert "ingressClassName" not in (await api.post(path, marked)).data["spec"]
