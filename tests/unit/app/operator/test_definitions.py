"""The operator's reaction to the kinds that an API has and lacks."""

import asyncio
import json
from typing import Any

import pytest

from paddock.app.operator import definitions
from paddock.dialects.vitistack.kinds import machine
from paddock.kubernetes.client.target import Key, Target, declared, plain
from tests.coroutines import run_by
from tests.kit.servers.apiclient import inside
from tests.kit.servers.apiharness import Harness

MACHINES = declared(machine.KINDS[0], machine.Machine)
INSTANCES = plain("kubevirt.io", "v1", "virtualmachineinstances", "VirtualMachineInstance")
OTHERS = plain("cdi.kubevirt.io", "v1beta9", "datavolumes", "DataVolume")
SPACESHIPS = plain("space.example.com", "v1", "ships", "Ship")


def definition(*members: str, **metadata: Any) -> dict[str, Any]:
    spec = {"type": "object", "properties": {each: {"type": "string"} for each in members}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {"metadata": {"name": "machines.vitistack.io", **metadata}, "spec": {"versions": [{"name": "v1alpha1", "schema": schema}]}}


def problems(*targets: Target[Any]) -> tuple[str, ...]:
    async def script() -> tuple[str, ...]:
        async with Harness() as api, inside(api) as client:
            return await definitions.problems(client, targets)

    return asyncio.run(script())


def test_everything_is_there() -> None:
    assert problems(MACHINES, INSTANCES, plain("", "v1", "secrets", "Secret")) == ()


def test_what_is_missing_is_named_with_its_remedy() -> None:
    assert problems(MACHINES, OTHERS, SPACESHIPS) == (
        "datavolumes.cdi.kubevirt.io/v1beta9 is not served: install CDI, KubeVirt's Containerized Data Importer",
        "ships.space.example.com/v1 is not served: install what serves space.example.com",
    )


@run_by(asyncio.run)
async def test_an_older_version_will_do_where_it_has_the_same_form(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"datavolumes.cdi.kubevirt.io/v1beta9": "v1beta1", "virtualmachineinstances.kubevirt.io/v1": "v1alpha3"}
    monkeypatch.setattr(definitions, "_OLDER", {**known, "ships.space.example.com/v1": "v0"})
    async with Harness() as api, inside(api) as client:
        assert await definitions.older(client, (MACHINES, INSTANCES, OTHERS, SPACESHIPS)) == [(OTHERS, "v1beta1")]


@pytest.mark.parametrize(
    ("group", "words"),
    [
        ("vitistack.io", "paddock crds --dialect vitistack | kubectl apply --server-side -f -"),
        ("infrastructure.stakater.com", "paddock crds --dialect stakater | kubectl apply --server-side -f -"),
        ("kubevirt.io", "install KubeVirt"),
        ("", "install what serves the core group"),
    ],
)
def test_remedies(group: str, words: str) -> None:
    assert definitions.remedy(group) == words


class _Api:
    """An API that serves some plurals, whose definitions have some members."""

    def __init__(self, served: tuple[str, ...], members: tuple[str, ...]) -> None:
        self._served, self._members = served, members

    async def request(self, method: str, path: str) -> bytes:
        return json.dumps({"resources": [{"name": each} for each in self._served]}).encode()

    async def get(self, target: Target[Any], key: Key) -> dict[str, Any]:
        return definition(*self._members)


@pytest.mark.parametrize(
    ("members", "words", "advised"),
    [
        (("template",), "is older than this operator: it lacks", True),
        (("template", "shape"), "is another project's: it has spec.shape and lacks", False),
        (("machineClass", "provider", "os", "disks", "memory", "cpu"), "is another project's: it lacks", False),
    ],
)
@pytest.mark.parametrize("target", [MACHINES, plain("vitistack.io", "v1alpha1", "others", "Other")])
@pytest.mark.spec("vitistack", 92)
def test_no_command_replaces_the_definitions_of_another_project(
    target: Target[Any], members: tuple[str, ...], words: str, advised: bool
) -> None:
    """Neither is it advised for a kind that is missing beside them: one command installs the whole group."""
    client: Any = _Api(("machines",), members)
    found = "; ".join(asyncio.run(definitions.problems(client, {MACHINES, target})))
    assert words in found
    assert ("kubectl apply" in found) is advised
    assert advised or "--dialect" in found


@pytest.mark.parametrize(
    ("owners", "wanted"),
    [
        (None, ""),
        ([{"apiVersion": "example.com/v1", "kind": "Installer", "name": "x"}], ""),
        (
            [{"apiVersion": "apiextensions.crossplane.io/v2", "kind": "CompositeResourceDefinition", "name": "xvms"}],
            "CompositeResourceDefinition xvms of Crossplane",
        ),
    ],
)
def test_whose_a_definition_is(owners: Any, wanted: str) -> None:
    assert definitions.claimed_by(definition(ownerReferences=owners)) == wanted


def test_a_definition_without_what_is_known_here() -> None:
    known = ("template", "resources", "disks", "networks", "bootOrder", "cloudInit", "domain")
    lacking = definitions.lacks(definition(*known), MACHINES)
    assert not {f"spec.{each}" for each in known} & set(lacking)
    assert "spec.template" in definitions.lacks(definition("machineClass", "sizeGB"), MACHINES)
    # Kinds that are read as plain data say nothing of their members.
    assert definitions.lacks(definition(), plain("vitistack.io", "v1alpha1", "machines", "Machine")) == ()
