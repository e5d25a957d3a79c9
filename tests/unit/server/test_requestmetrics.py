"""The counts of requests: labels, buckets, streams, and a bound on the number of series."""

import asyncio
from typing import Any

import pytest

from paddock.server.requestmetrics import COUNT, OPEN, TOOK
from tests.coroutines import scripted, timeless
from tests.kit.prometheus import Family, read
from tests.kit.servers.apiharness import Harness

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
BODY: dict[str, Any] = {"metadata": {"name": "a"}}
APPLIED = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}'


def page(api: Harness) -> dict[str, Family]:
    return read("\n".join(api.api.metrics.lines()) + "\n")


@pytest.mark.parametrize(
    ("method", "target", "body", "labels"),
    [
        ("POST", CONFIGMAPS, BODY, {"verb": "POST", "scope": "resource", "code": "201", "dry_run": ""}),
        ("POST", f"{CONFIGMAPS}?dryRun=All", BODY, {"verb": "POST", "dry_run": "All", "code": "201"}),
        ("GET", f"{CONFIGMAPS}/absent", None, {"verb": "GET", "scope": "resource", "code": "404"}),
        ("GET", CONFIGMAPS, None, {"verb": "LIST", "scope": "namespace", "resource": "configmaps", "version": "v1", "group": ""}),
        ("GET", "/apis/kubevirt.io/v1/virtualmachines", None, {"verb": "LIST", "scope": "cluster", "group": "kubevirt.io"}),
        ("DELETE", CONFIGMAPS, None, {"verb": "DELETECOLLECTION", "code": "200"}),
        ("PUT", "/api/v1/namespaces/default/services/a/status", BODY, {"verb": "PUT", "subresource": "status"}),
        ("GET", "/readyz", None, {"verb": "GET", "resource": "", "subresource": "/readyz", "scope": ""}),
        # made up by the client
        ("GET", "/apis/made.up/v1/things", None, {"verb": "LIST", "group": "", "resource": "", "code": "404"}),
        ("GET", f"{CONFIGMAPS}/a/made-up", None, {"verb": "GET", "resource": "", "subresource": "", "code": "404"}),
        ("BREW", CONFIGMAPS, None, {"verb": "OTHER", "resource": "configmaps", "code": "405"}),
    ],
)
@scripted
async def test_a_request_has_its_labels(method: str, target: str, body: Any, labels: dict[str, str]) -> None:
    async with Harness() as api:
        await api.answer(method, target, body)
        found = page(api)
        assert found[COUNT].values(component="apiserver", **labels) == [1]
        about = {name: value for name, value in labels.items() if name != "code"}
        assert found[TOOK].values(le="+Inf", **about) == [1]


@scripted
async def test_an_apply_is_no_patch() -> None:
    async with Harness() as api:
        await api.answer("PATCH", f"{CONFIGMAPS}/b?fieldManager=x", APPLIED, content_type="application/apply-patch+yaml")
        assert page(api)[COUNT].values(verb="APPLY") == [1]


@timeless
async def test_a_watch_counts_when_it_ends_and_is_open_until_then() -> None:
    async with Harness() as api:
        async with api.watch(f"{CONFIGMAPS}?watch=true"):
            await asyncio.sleep(2)
            found = page(api)
            assert found[OPEN].values(verb="WATCH", resource="configmaps") == [1]
            assert found[COUNT].values(verb="WATCH") == []
        await asyncio.sleep(1)
        found = page(api)
        assert found[OPEN].values(verb="WATCH") == [0] and found[COUNT].values(verb="WATCH", code="200") == [1]


@scripted
async def test_a_client_cannot_make_series() -> None:
    async with Harness() as api:
        for number in range(50):
            await api.answer("GET", f"/apis/group{number}.io/v{number}/things{number}")
            await api.answer("GET", f"/nowhere/{number}")
            await api.answer(f"BREW{number}", f"{CONFIGMAPS}/a")
            await api.answer(f"BREW{number}", f"/nowhere/{number}")
            await api.answer("GET", f"{CONFIGMAPS}/a/b{number}/{number}")
            await api.answer("GET", f"/api/v1/namespaces/default/services/a/proxy/{number}")
        found = page(api)
        assert sum(found[COUNT].values()) == 300
        assert len(found[COUNT].series) <= 8 and len(api.api.metrics._series) <= 10  # what the memory is
