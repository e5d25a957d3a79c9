"""helm 3 and helm 4 take a chart through its life: definitions, custom objects, a machine, secrets, rights, hooks."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.reference import recipes
from tests.reference.build import Recipe
from tests.reference.client import Api, Kubectl, Ran

pytestmark = pytest.mark.reference
CHART = Path(__file__).parent / "chart"


@dataclass(frozen=True)
class Helm:
    """A helm with a home of its own, in one namespace."""

    program: Path
    kubeconfig: Path
    home: Path
    namespace: str

    def run(self, *arguments: str) -> Ran:
        environment = {"PATH": os.defpath, "HOME": str(self.home), "KUBECONFIG": str(self.kubeconfig), "HELM_NAMESPACE": self.namespace}
        done = subprocess.run([str(self.program), *arguments], capture_output=True, text=True, env=environment, timeout=120)
        return Ran(done.returncode, done.stdout, done.stderr)

    def ok(self, *arguments: str) -> str:
        ran = self.run(*arguments)
        assert ran.code == 0, (arguments, ran.errors, ran.output)
        return ran.output

    def releases(self) -> list[tuple[str, str, str]]:
        return [(each["name"], each["revision"], each["status"]) for each in json.loads(self.ok("list", "-o", "json"))]

    def history(self, name: str) -> list[tuple[int, str]]:
        return [(each["revision"], each["status"]) for each in json.loads(self.ok("history", name, "-o", "json"))]


@pytest.fixture(params=recipes.HELMS)
def helm(
    request: pytest.FixtureRequest, program: Callable[[Recipe], Path], kubectl: Kubectl, namespace: str, tmp_path: Path
) -> Iterator[Helm]:
    folder = program(recipes.HELMS[request.param])
    yield Helm(folder / "helm", kubectl.access.kubeconfig, tmp_path, namespace)
    kubectl.run("delete", "crd", "boxes.charts.paddock.example", "--ignore-not-found")


def of(kubectl: Kubectl, helm: Helm, what: str, path: str, name: str = "yard") -> str:
    return kubectl.ok("get", what, name, "-n", helm.namespace, "-o", f"jsonpath={path}")


@pytest.mark.spec("kube-api", 127)
def test_the_life_of_a_release(helm: Helm, kubectl: Kubectl, api: Api) -> None:
    said = helm.ok("install", "yard", str(CHART), "--wait", "--timeout=60s")
    assert "STATUS: deployed" in said
    assert helm.releases() == [("yard", "1", "deployed")]
    assert of(kubectl, helm, "boxes", "{.spec.color}") == "red"
    assert of(kubectl, helm, "virtualmachines.infrastructure.stakater.com", "{.spec.parameters.runStrategy}") == "Halted"
    assert of(kubectl, helm, "configmap", "{.data.served} {.data.found}") == "true 5"
    assert of(kubectl, helm, "configmap", "{.data.revision}", "yard-before") == "1"
    assert "sh.helm.release.v1.yard.v1" in kubectl.ok("get", "secrets", "-n", helm.namespace, "--field-selector", "type=helm.sh/release.v1")
    who = f"--as=system:serviceaccount:{helm.namespace}:yard"
    assert kubectl.ok("auth", "can-i", "list", "boxes", who, "-n", helm.namespace) == "yes\n"

    changed = ("--set", "color=blue,runStrategy=Always,extra=false", "--wait", "--timeout=60s")
    assert "STATUS: deployed" in helm.ok("upgrade", "yard", str(CHART), *changed)
    assert of(kubectl, helm, "boxes", "{.spec.color}") == "blue"
    assert of(kubectl, helm, "virtualmachines.infrastructure.stakater.com", "{.spec.parameters.runStrategy}") == "Always"
    assert kubectl.run("get", "secret", "yard", "-n", helm.namespace).code == 1

    helm.ok("rollback", "yard", "1", "--wait", "--timeout=60s")
    assert of(kubectl, helm, "boxes", "{.spec.color}") == "red"
    assert of(kubectl, helm, "secret", "{.data.password}") == "cmVk"
    assert helm.history("yard") == [(1, "superseded"), (2, "superseded"), (3, "deployed")]
    assert "Succeeded" in helm.ok("test", "yard")
    assert "color: red" in helm.ok("get", "manifest", "yard")
    assert "NAME: yard" in helm.ok("status", "yard")

    assert "uninstalled" in helm.ok("uninstall", "yard", "--wait", "--timeout=60s")
    assert helm.releases() == []
    for what in ("boxes", "virtualmachines.infrastructure.stakater.com", "configmap", "serviceaccount", "role", "rolebinding", "service"):
        assert kubectl.run("get", what, "yard", "-n", helm.namespace).code == 1
    # A definition outlives the charts that bring it.
    assert kubectl.run("get", "crd", "boxes.charts.paddock.example").code == 0


def test_an_upgrade_that_fails_is_told_and_rolled_back(helm: Helm, kubectl: Kubectl) -> None:
    helm.ok("install", "yard", str(CHART))
    refused = helm.run("upgrade", "yard", str(CHART), "--set", "broken=true,color=blue", "--atomic", "--timeout=30s")
    assert refused.code == 1
    assert "spec.template.spec.containers: Required value" in refused.errors
    assert of(kubectl, helm, "boxes", "{.spec.color}") == "red"
    assert [status for _, status in helm.history("yard")] == ["superseded", "failed", "deployed"]
    wrong = helm.run("upgrade", "yard", str(CHART), "--set", "color=green")
    assert (wrong.code, 'Unsupported value: "green"' in wrong.errors) == (1, True)


def test_templates_are_tried_on_the_server(helm: Helm, kubectl: Kubectl) -> None:
    kubectl.ok("apply", "-f", str(CHART / "crds"))
    kubectl.ok("wait", "--for=condition=Established", "crd/boxes.charts.paddock.example")
    assert 'found: "5"' in helm.ok("install", "yard", str(CHART), "--dry-run=server")
    assert helm.releases() == []
    assert "created" not in helm.ok("template", "yard", str(CHART), "--validate")
