"""Parts of the server as clients of a cluster ask for them: component statuses, and checks by kube-apiserver's names."""

import pytest

from paddock.server.builtin import components
from paddock.server.health import ServerHealth
from tests.coroutines import played
from tests.kit.servers.apiharness import Harness

PATH = "/api/v1/componentstatuses"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.mark.spec("kube-api", 143)
@pytest.mark.parametrize(("wrong", "cells"), [("", ["Healthy", "ok", ""]), ("the disk is full", ["Unhealthy", "", "the disk is full"])])
@played
async def test_parts_say_how_they_are(api: Harness, /, wrong: str, cells: list[str]) -> None:
    api.api.subresources.update(components.handlers(api.parts, lambda: wrong))
    names = [each["metadata"]["name"] for each in (await api.get(PATH)).data["items"]]
    assert names == ["controller-manager", "etcd-0"]
    row = (await api.get(f"{PATH}/etcd-0", accept=TABLE)).data["rows"][0]
    assert row["cells"] == ["etcd-0", *cells]
    assert (await api.get(f"{PATH}/scheduler")).status == 404
    assert (await api.post(PATH, {"metadata": {"name": "x"}})).status == 405


@pytest.mark.spec("kube-api", 143)
@played
async def test_checks_have_the_names_that_probes_ask_for(api: Harness, /) -> None:
    health: ServerHealth = api.api.health
    state = {"start": "the server is starting", "store": ""}
    health.add_start(lambda: state["start"])
    health.add_store(lambda: state["store"])
    hook = "poststarthook/rbac/bootstrap-roles"
    assert (await api.get(f"/healthz/{hook}")).status == 500
    state["start"] = ""
    for path in ("/healthz", "/livez", "/readyz"):
        lines = (await api.get(f"{path}?verbose")).raw.decode().splitlines()
        assert {"[+]ping ok", "[+]log ok", "[+]etcd ok", f"[+]{hook} ok", "[+]autoregister-completion ok"} <= set(lines)
    assert (await api.get("/readyz/informer-sync")).raw == b"ok"
    # It reads on: nobody should end it.
    state["store"] = "the disk is full"
    assert [(await api.get(f"{path}/etcd")).status for path in ("/livez", "/readyz")] == [200, 500]
