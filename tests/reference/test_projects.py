"""Definitions that other projects publish: a real kube-apiserver and Paddock take them alike, strictly, and serve every version."""

import asyncio
import copy
from typing import Any

import pytest

from tests.coroutines import run_by
from tests.kit.servers.apiharness import Harness, Reply
from tests.reference import cdidefinitions, crds, projects
from tests.reference.client import Api, Json
from tests.reference.crds import Crd, condition

pytestmark = pytest.mark.reference


def taken(document: Json, group: str) -> Json:
    """The same definition in another group: ours has some of them under their own."""
    made = copy.deepcopy(document)
    made["spec"]["group"] = group
    made["metadata"] = {"name": f"{made['spec']['names']['plural']}.{group}", "annotations": document["metadata"].get("annotations") or {}}
    return made


@pytest.mark.spec("kube-api", 103, "real CRDs")
@run_by(asyncio.run)
async def test_both_servers_take_them_all(api: Api) -> None:
    async with Harness() as server:
        assert [text for origin, document in projects.definitions() async for text in _compared(api, server, origin, document)] == []


async def _compared(api: Api, server: Harness, origin: str, document: Json) -> Any:
    crd = taken(document, "".join(c for c in document["spec"]["group"] if c.isalnum() or c == ".").replace(".k8s.io", ".example") + ".test")
    theirs = api.request("POST", crds.PATH, crd, query={"fieldValidation": "Strict"})
    ours: Reply = await server.post(f"{crds.PATH}?fieldValidation=Strict", crd)
    if not theirs.ok:
        yield f"{origin}: kube-apiserver says {theirs.status}: {theirs.message}"
    if ours.status != 201:
        yield f"{origin}: Paddock says {ours.status}: {ours.data['message'][:500]}"
        return
    for name in ("NamesAccepted", "Established"):
        if condition(ours.data, name).get("status") != "True":
            yield f"{origin}: {name} is {condition(ours.data, name)}"
    for version in Crd(origin, crd).served:
        served = Crd(origin, crd).resource(version)
        if (await server.get(served.path())).status != 200:
            yield f"{origin}: {version['name']} is not served"


def test_nothing_is_missing() -> None:
    """An empty list would let everything above pass."""
    origins = [origin for origin, _ in projects.definitions()]
    assert len(origins) > 50
    assert {each.split()[0] for each in origins} == {each.module for each in (*projects.PROJECTS, projects.KUBEVIRT)} | {
        cdidefinitions.MODULE
    }


@run_by(asyncio.run)
async def test_those_of_our_own_kinds_are_taken_under_their_own_names() -> None:
    wrong = []
    async with Harness() as server:
        own = {each["metadata"]["name"] for each in (await server.get(crds.PATH)).data["items"]}
        for origin, document in projects.definitions():
            name = document["metadata"]["name"]
            if name in own:
                said = await server.apply(f"{crds.PATH}/{name}", document)
                if said.status != 200 or not said.warnings or condition(said.data, "Established").get("status") != "True":
                    wrong.append(f"{origin}: {said.status} {said.warnings}")
        assert "virtualmachines.kubevirt.io" in own
    assert wrong == []
