"""A server that is to be an older release of KubeVirt, as its clients see it."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.reference.client import Api
from tests.reference.embedded import Embedded, serving
from tests.scenario.simulated.conftest import Commands, until
from tests.scenario.simulated.test_server import machine

VERSION = "/apis/subresources.kubevirt.io/v1/version"
MACHINES = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines"
POOLS = "/apis/pool.kubevirt.io/{}/namespaces/default/virtualmachinepools"
KUBEVIRT = "/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt"


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """A server that is KubeVirt 1.3."""
    folder = tmp_path_factory.mktemp("old") / "server"
    with serving(folder, "--guests", "simulated", "--as-kubevirt", "1.3", command="up") as server:
        yield server


@pytest.fixture(scope="module")
def api(old: Embedded) -> Iterator[Api]:
    with closing(Api(old.access)) as api:
        yield api


def _later(name: str) -> dict[str, Any]:
    made: dict[str, Any] = yaml.safe_load(machine(name))
    made["spec"]["template"]["spec"]["domain"] |= {"rebootPolicy": "Reboot", "ioThreads": {"supplementalPoolThreadCount": 1}}
    return made


def _told(api: Api) -> set[str | None]:
    """What the KubeVirt object tells, once it is there."""
    status = api.request("GET", KUBEVIRT).body.get("status")
    # That of a refusal is a word.
    told = status if isinstance(status, dict) else {}
    return {told.get(f"{each}Version") for each in ("operator", "observedKubeVirt", "targetKubeVirt")}


@pytest.mark.spec("kubevirt", 236)
def test_it_tells_the_release(api: Api) -> None:
    assert api.request("GET", VERSION).body["gitVersion"].startswith("v1.3.0+paddock.")
    health = api.request("GET", "/apis/subresources.kubevirt.io/v1/healthz").body
    assert health["apiserver"]["version"] == "v1.3.0"
    assert until(lambda: _told(api) == {"v1.3.0"}), _told(api)


@pytest.mark.spec("kubevirt", 237)
def test_a_later_field_is_refused_or_pruned_as_asked(api: Api) -> None:
    refused = api.request("POST", MACHINES, _later("strict"), query={"fieldValidation": "Strict"})
    assert refused.status == 400 and 'unknown field "spec.template.spec.domain.rebootPolicy"' in refused.message
    made = api.request("POST", MACHINES, _later("lenient"), query={"fieldValidation": "Warn"})
    assert made.ok and any("rebootPolicy" in each for each in made.warnings)
    stored = api.request("GET", f"{MACHINES}/lenient").body["spec"]["template"]["spec"]["domain"]
    assert "rebootPolicy" not in stored and "ioThreads" not in stored
    published = json.dumps(api.request("GET", "/openapi/v3/apis/kubevirt.io/v1").body)
    assert '"rebootPolicy"' not in published and '"supplementalPoolThreadCount"' not in published and '"guest"' in published


@pytest.mark.spec("kubevirt", 238)
def test_a_pool_of_the_old_version_works(api: Api) -> None:
    assert api.request("GET", POOLS.format("v1beta1")).status == 404
    template = {"metadata": {"labels": {"app": "web"}}, "spec": yaml.safe_load(machine("x"))["spec"]}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "virtualMachineTemplate": template}
    pool = {"apiVersion": "pool.kubevirt.io/v1alpha1", "kind": "VirtualMachinePool", "metadata": {"name": "web"}, "spec": spec}
    made = api.request("POST", POOLS.format("v1alpha1"), pool)
    assert made.ok, made.message

    def ready() -> bool:
        found = api.request("GET", f"{POOLS.format('v1alpha1')}/web").body
        return bool(found["apiVersion"] == "pool.kubevirt.io/v1alpha1" and found.get("status", {}).get("readyReplicas") == 2)

    assert until(ready)
    groups = api.request("GET", "/apis/pool.kubevirt.io").body
    assert [each["version"] for each in groups["versions"]] == ["v1alpha1"]


@pytest.mark.spec("kubevirt", 239)
def test_a_later_path_is_not_found(api: Api) -> None:
    api.request("POST", MACHINES, yaml.safe_load(machine("verbs")))
    path = "/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachineinstances/verbs"
    assert until(lambda: api.request("GET", f"{path}/guestosinfo").ok)
    assert api.request("PUT", f"{path}/reset").status == 404
    assert api.request("PUT", f"{path}/softreboot").ok


@pytest.mark.spec("kubevirt", 240)
def test_gates_are_asked_for_as_in_the_release(api: Api) -> None:
    given = yaml.safe_load(machine("gated"))
    given["spec"]["template"]["spec"]["domain"]["devices"]["gpus"] = [{"name": "gpu", "deviceName": "example.com/gpu"}]
    refused = api.request("POST", MACHINES, given)
    assert not refused.ok and "GPU feature gate is not enabled" in refused.message
    configuration = {"spec": {"configuration": {"developerConfiguration": {"featureGates": ["GPU"]}}}}
    patch = {"Content-Type": "application/merge-patch+json"}
    assert api.request("PATCH", KUBEVIRT, configuration, headers=patch).ok
    made = api.request("POST", MACHINES, given)
    assert made.ok, made.message


@pytest.mark.spec("kubevirt", 241)
def test_a_release_goes_up_and_not_down(tmp_path: Path) -> None:
    folder = tmp_path / "server"

    def told(release: str) -> set[str | None]:
        with serving(folder, "--guests", "simulated", "--as-kubevirt", release, command="up") as server, closing(Api(server.access)) as api:
            until(lambda: _told(api) == {f"v{release}.0"})
            return _told(api)

    assert [told("1.4"), told("1.6")] == [{"v1.4.0"}, {"v1.6.0"}]
    words = ("up", "--dir", str(folder), "--listen", "127.0.0.1:0", "--guests", "simulated", "--as-kubevirt", "1.5")
    done = Commands(folder / "kubeconfig").run(*words)
    assert done.returncode and "cannot serve this directory as KubeVirt v1.5.0: it was used as KubeVirt v1.6.0" in done.stderr
    assert told("1.6") == {"v1.6.0"}


@pytest.mark.parametrize("release", ["1.2", "1.10", "2.0", "newest"])
def test_other_releases_are_refused(release: str, tmp_path: Path) -> None:
    done = Commands(tmp_path / "kubeconfig").run("up", "--dir", str(tmp_path / "server"), "--as-kubevirt", release)
    assert done.returncode and f'"{release}" is no release of KubeVirt from 1.3 to 1.9' in done.stderr
