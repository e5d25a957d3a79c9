"""The server's own kinds as definitions: listed, established, held against installers that bring the same kinds."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from paddock.server.store.memory import MemoryStore
from tests.coroutines import played, run_by
from tests.kit.servers.apiharness import Harness

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
VM = f"{CRDS}/virtualmachines.kubevirt.io"
FILES = sorted((Path(__file__).parents[4] / "api" / "crds").rglob("*.yaml"))


def foreign() -> dict[str, Any]:
    """A definition of virtual machines that somebody else has written."""
    schema = {"type": "object", "properties": {"spec": {"type": "object"}}}
    versions = [
        {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}} for name in ("v1", "v1alpha9")
    ]
    names = {"plural": "virtualmachines", "kind": "VirtualMachine", "shortNames": ["machine"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "virtualmachines.kubevirt.io", "labels": {"app.kubernetes.io/name": "kubevirt"}},
        "spec": {"group": "kubevirt.io", "scope": "Namespaced", "names": names, "versions": versions},
    }


SAID = (
    "virtualmachines.kubevirt.io is served by Paddock itself: its schema and versions stay as they are, only labels and annotations "
    "are taken; not served here: v1alpha9"
)


@played
async def test_all_are_listed_as_their_files_say(api: Harness, /) -> None:
    listed = {each["metadata"]["name"]: each for each in (await api.get(CRDS)).data["items"]}
    files = {crd["metadata"]["name"]: crd for file in FILES for crd in yaml.load_all(file.read_text(), Loader=yaml.CSafeLoader)}
    assert set(listed) == set(files)
    for name, crd in files.items():
        found = listed[name]
        assert found["spec"] == crd["spec"]
        conditions = {each["type"]: each["status"] for each in found["status"]["conditions"]}
        assert conditions == {"NamesAccepted": "True", "Established": "True"}
        assert found["status"]["acceptedNames"] == crd["spec"]["names"]


@played
async def test_one_that_comes_is_accepted_with_a_warning(api: Harness, /) -> None:
    before = (await api.get(VM)).data
    applied = await api.apply(VM, foreign(), "flux")
    assert (applied.status, applied.warnings) == (200, [f'299 - "{SAID}"'])
    merged = await api.merge(VM, {**foreign(), "metadata": {"annotations": {"a": "b"}}})
    assert (merged.status, merged.warnings) == (200, [f'299 - "{SAID}"'])
    replaced = await api.put(VM, {**foreign(), "metadata": {**merged.data["metadata"], "labels": {"new": "one"}}})
    assert (replaced.status, replaced.warnings) == (200, [f'299 - "{SAID}"'])
    after = (await api.get(VM)).data
    assert after == replaced.data
    assert (after["spec"], after["status"]) == (before["spec"], before["status"])
    assert after["metadata"]["labels"] == {"new": "one"} and after["metadata"]["annotations"] == {"a": "b"}
    assert after["metadata"]["generation"] == 1
    # Nobody owns what he could not set, so others meet no conflict.
    other = await api.apply(VM, {**foreign(), "metadata": {"name": "virtualmachines.kubevirt.io"}}, "helm")
    assert other.status == 200
    owned = {each["manager"]: each["fieldsV1"] for each in other.data["metadata"]["managedFields"]}
    assert owned["paddock"] == {"f:spec": {}} and not any("f:spec" in fields for who, fields in owned.items() if who != "paddock")


@played
async def test_applying_the_same_again_changes_nothing(api: Harness, /) -> None:
    first = await api.apply(VM, foreign(), "flux")
    again = await api.apply(VM, foreign(), "flux")
    assert again.data == first.data
    assert (await api.put(VM, {**foreign(), "metadata": first.data["metadata"]})).data == first.data


@pytest.mark.parametrize("change", [{"spec": {"group": "example.com"}}, {"spec": {"versions": []}}, {"spec": None}, {"status": {}}])
@played
async def test_nothing_but_metadata_is_ever_taken(api: Harness, /, change: dict[str, Any]) -> None:
    before = (await api.get(VM)).data
    for path in (VM, f"{VM}/status"):
        assert (await api.merge(path, change)).status == 200
    assert (await api.get(VM)).data == before


@played
async def test_they_cannot_be_deleted(api: Harness, /) -> None:
    said = await api.delete(VM)
    assert (said.status, said.reason) == (403, "Forbidden")
    assert "this kind is a part of Paddock itself" in said.data["message"]
    assert (await api.get(VM)).status == 200


@run_by(asyncio.run)
async def test_markers_are_kept_and_follow_what_is_served() -> None:
    store = MemoryStore()
    async with Harness(store=store) as api:
        await api.merge(VM, {"metadata": {"labels": {"mine": "yes"}}})
        before = (await api.get(VM)).data
    revision = store.revision
    async with Harness(store=store) as again:
        assert (await again.get(VM)).data == before
    assert store.revision == revision


@run_by(asyncio.run)
async def test_a_kind_that_is_served_no_longer_loses_its_marker() -> None:
    store = MemoryStore()
    async with Harness(store=store) as api:
        machines = [each for each in api.registry if each.kind == "VirtualMachine" and each.group == "kubevirt.io"]
        later = Harness(store=store)
        later.registry.remove(*machines)
        async with later:
            assert (await later.get(VM)).status == 404
