"""Every kubectl that users have writes and reads a machine, a kind of a user and a ConfigMap."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.reference import recipes
from tests.reference.client import Kubectl

pytestmark = [pytest.mark.reference, pytest.mark.usefixtures("crates")]


@dataclass(frozen=True)
class Thing:
    """An object, and the member that the test changes: from what to what, and what is wrong with it."""

    resource: str
    document: dict[str, Any]
    path: tuple[str, ...]
    values: tuple[str, str, str]

    def text(self, name: str, value: str) -> str:
        """The manifest under a name."""
        document = json.loads(json.dumps(self.document))
        document["metadata"] = {"name": name, "labels": {"by": "matrix"}}
        place = document
        for member in self.path[:-1]:
            place = place.setdefault(member, {})
        place[self.path[-1]] = value
        return str(yaml.safe_dump(document))


THINGS = {
    "machine": Thing(
        "virtualmachines.infrastructure.stakater.com",
        {"apiVersion": "infrastructure.stakater.com/v1", "kind": "VirtualMachine", "spec": {"parameters": {}}},
        ("spec", "parameters", "runStrategy"),
        ("Always", "Halted", "Manual"),
    ),
    "crate": Thing(
        "crates.reference.paddock.example",
        {"apiVersion": "reference.paddock.example/v1", "kind": "Crate", "spec": {"color": "red"}},
        ("spec", "lid"),
        ("first", "second", "third"),
    ),
    "configmap": Thing("configmaps", {"apiVersion": "v1", "kind": "ConfigMap"}, ("data", "key"), ("first", "second", "third")),
}


@pytest.fixture(params=THINGS)
def thing(request: pytest.FixtureRequest) -> Thing:
    return THINGS[request.param]


@pytest.mark.spec("kube-api", 12)
def test_create_get_apply_edit_delete(any_kubectl: Kubectl, thing: Thing, namespace: str, tmp_path: Path) -> None:
    first, second, third = thing.values
    editor = tmp_path / "editor"
    editor.write_text(f"#!/bin/sh\nsed -i 's/: {second}$/: {third}/' \"$1\"\n")
    editor.chmod(0o755)
    client = replace(any_kubectl, environment={"KUBE_EDITOR": str(editor)})
    there = ("-n", namespace)

    def value(name: str) -> str:
        return client.ok("get", thing.resource, name, *there, "-o", "jsonpath={." + ".".join(thing.path) + "}")

    assert "created" in client.ok("create", "-f", "-", *there, stdin=thing.text("made", first))
    assert value("made") == first
    assert client.ok("get", thing.resource, "-l", "by=matrix", *there).splitlines()[1].split()[0] == "made"

    assert "created" in client.ok("apply", "-f", "-", *there, stdin=thing.text("applied", first))
    assert "unchanged" in client.ok("apply", "-f", "-", *there, stdin=thing.text("applied", first))
    assert "configured" in client.ok("apply", "-f", "-", *there, stdin=thing.text("applied", second))
    assert value("applied") == second

    assert "serverside-applied" in client.ok("apply", "--server-side", "-f", "-", *there, stdin=thing.text("served", first))
    assert "serverside-applied" in client.ok("apply", "--server-side", "-f", "-", *there, stdin=thing.text("served", second))
    assert value("served") == second

    assert "edited" in client.ok("edit", thing.resource, "served", *there)
    assert value("served") == third

    deleted = client.ok("delete", thing.resource, "made", "applied", "served", *there)
    assert deleted.count("deleted") == 3
    assert client.ok("get", thing.resource, "-l", "by=matrix", *there, "-o", "name") == ""


def test_the_versions_are_those_they_are_called(any_kubectl: Kubectl, request: pytest.FixtureRequest) -> None:
    said = json.loads(any_kubectl.ok("version", "--client", "-o", "json"))["clientVersion"]["gitVersion"]
    recipe = recipes.OLD_KUBECTLS.get(request.node.callspec.params["any_kubectl"])
    assert said.startswith("v1.")
    assert recipe is None or said == recipe.version


@pytest.mark.spec("kube-api", 11)
@pytest.mark.parametrize("any_kubectl", ["1.27"], indirect=True)
def test_the_oldest_asks_for_the_second_openapi_in_its_binary_form(any_kubectl: Kubectl, namespace: str) -> None:
    text = THINGS["crate"].text("old", "lid")
    ran = any_kubectl.run("create", "-f", "-", "-n", namespace, "-v=7", stdin=text)
    assert (ran.code, "created" in ran.output) == (0, True)
    assert "/openapi/v2" in ran.errors or "/openapi/v3" in ran.errors
