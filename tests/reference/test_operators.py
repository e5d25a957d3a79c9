"""Go programs use the embedded server as operators do: informers, leader election, a controller-runtime manager, envtest."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.reference.build import Binaries, built
from tests.reference.client import Api
from tests.reference.embedded import Embedded
from tests.reference.programs import PATIENCE, telling
from tests.reference.recipes import OPERATORS, SUITE

pytestmark = pytest.mark.reference
OPERATOR = Path(__file__).parent / "go" / "operator"
MAPS = "/api/v1/namespaces/default/configmaps"
PARCELS = "/apis/post.example.com/v1/namespaces/default/parcels"
Record = Callable[[str, object], None]
FORMS = ("typed", "dynamic", "metadata")


@pytest.fixture(scope="module")
def programs(pytestconfig: pytest.Config) -> Path:
    terminal = pytestconfig.pluginmanager.getplugin("terminalreporter")
    return built(OPERATORS, say=terminal.write_line if terminal else print)


@pytest.fixture
def api(server: Embedded) -> Iterator[Api]:
    api = Api(server.access)
    yield api
    api.close()


def write(api: Api, name: str, value: str) -> str:
    """Create or change a ConfigMap; the version it got."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"value": value}}}
    answer = api.request("POST", MAPS, body)
    if answer.status == 409:
        answer = api.request("PUT", f"{MAPS}/{name}", body)
    assert answer.ok, answer.body
    version: str = answer.body["metadata"]["resourceVersion"]
    return version


@pytest.mark.parametrize("form", FORMS)
def test_informers_sync_and_see_every_change(server: Embedded, api: Api, programs: Path, tmp_path: Path, form: str) -> None:
    write(api, "first", "1")
    with telling([programs / "informer", "-kubeconfig", server.kubeconfig, "-form", form], tmp_path / "informer.log") as informer:
        synced = informer.wait_for("synced")
        assert synced["names"] == ["default/first", "default/kube-root-ca.crt"]
        assert synced["millis"] < 1000
        # One streaming request in place of a list and a watch.
        assert informer.count("stream", count=200) == 1
        assert informer.count("list") == 0
        for value in ("2", "3"):
            version = write(api, "first", value)
            assert informer.wait_for("updated")["value"] == value
            assert informer.said[-1]["version"] == version
        assert api.request("DELETE", f"{MAPS}/first").ok
        assert informer.wait_for("deleted")["name"] == "first"
        assert informer.end()[-1]["names"] == ["default/kube-root-ca.crt"]


@pytest.mark.spec("kube-api", 58)
def test_an_informer_of_an_empty_resource_syncs_at_once(server: Embedded, programs: Path, tmp_path: Path) -> None:
    command = [programs / "informer", "-kubeconfig", server.kubeconfig, "-namespace", "nowhere"]
    with telling(command, tmp_path / "informer.log") as informer:
        synced = informer.wait_for("synced")
        assert synced.get("names") is None
        assert synced["millis"] < 1000
        assert informer.count("stream", count=200) == 1
        assert informer.count("list") == 0
    plain = Api(server.access)
    assert plain.request("GET", f"{MAPS}?watch=true&sendInitialEvents=true").status == 422
    plain.close()


@pytest.mark.parametrize("form", FORMS)
def test_informers_go_on_after_a_crash_of_the_server(server: Embedded, api: Api, programs: Path, tmp_path: Path, form: str) -> None:
    write(api, "kept", "1")
    with telling([programs / "informer", "-kubeconfig", server.kubeconfig, "-form", form], tmp_path / "informer.log") as informer:
        informer.wait_for("synced")
        # A watch that ends at once without a change is none to client-go; it would begin anew for that reason.
        write(api, "kept", "2")
        informer.wait_for("updated")
        server.kill()
        api.close()
        server.start()
        version = write(api, "later", "1")
        seen = informer.wait_for("added", lambda line: line["name"] == "later")
        assert seen["version"] == version
        # It went on where it was: nothing was asked for anew, nothing told twice.
        assert informer.count("list") == 0
        assert informer.count("stream", count=200) == 1
        assert informer.count("added", name="kept") == 1
        assert informer.end()[-1]["names"] == ["default/kept", "default/kube-root-ca.crt", "default/later"]


@pytest.mark.spec("kube-api", 59)
def test_an_informer_whose_version_is_forgotten_lists_anew(server: Embedded, api: Api, programs: Path, tmp_path: Path) -> None:
    write(api, "kept", "1")
    backup = tmp_path / "backup"
    paddock("backup", "--dir", server.root, backup)
    with telling([programs / "informer", "-kubeconfig", server.kubeconfig], tmp_path / "informer.log") as informer:
        informer.wait_for("synced")
        forgotten = write(api, "gone", "1")
        informer.wait_for("added", lambda line: line["name"] == "gone")
        server.stop()
        api.close()
        # What a restored store is asked for from before is not known any more, and its versions go on above all it ever gave.
        (server.root / "store.db").rename(tmp_path / "moved.db")
        paddock("backup", "restore", "--dir", server.root, backup)
        server.start()
        assert informer.wait_for("deleted")["name"] == "gone"
        assert int(write(api, "later", "1")) > int(forgotten)
        informer.wait_for("added", lambda line: line["name"] == "later")
        assert informer.count("stream", count=200) == 2
        assert informer.end()[-1]["names"] == ["default/kept", "default/kube-root-ca.crt", "default/later"]
    old = api.request("GET", f"{MAPS}?watch=true&resourceVersion={forgotten}")
    assert old.status == 200
    assert (old.body["type"], old.body["object"]["code"], old.body["object"]["reason"]) == ("ERROR", 410, "Expired")


def paddock(*arguments: str | Path) -> None:
    """Run a command of ours."""
    ran = subprocess.run([sys.executable, "-m", "paddock.app", *map(str, arguments)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.spec("kube-api", 117)
def test_one_of_two_leads_and_hands_over(server: Embedded, programs: Path, tmp_path: Path) -> None:
    def candidate(name: str) -> list[str | Path]:
        return [programs / "election", "-kubeconfig", server.kubeconfig, "-identity", name]

    lease = 3.0
    with telling(candidate("one"), tmp_path / "one.log") as one, telling(candidate("two"), tmp_path / "two.log") as two:
        one.wait_for("leader")
        two.wait_for("leader")
        first, second = (one, two) if one.count("leading") else (two, one)
        assert first.count("leading") == 1
        # Who does not lead does not begin to while the other holds on.
        with pytest.raises(AssertionError):
            second.wait_for("leading", patience=lease * 1.5)
        released = time.monotonic()
        first.end()
        second.wait_for("leading")
        # Released, not run out.
        assert second.times[-1] - released < lease
        with telling(candidate("three"), tmp_path / "three.log") as third:
            assert third.wait_for("leader")["value"] in ("one", "two")
            second.kill()
            third.wait_for("leading")
    api = Api(server.access)
    holder = api.request("GET", "/apis/coordination.k8s.io/v1/namespaces/default/leases/leader").body["spec"]
    assert (holder["holderIdentity"], holder["leaseTransitions"]) == ("three", 2)
    api.close()


def install(api: Api) -> None:
    """The kind of the operator."""
    crd = yaml.safe_load((OPERATOR / "crd" / "parcels.yaml").read_text())
    assert api.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd).status == 201


def parcel(api: Api, name: str) -> dict[str, Any]:
    made: dict[str, Any] = api.request("GET", f"{PARCELS}/{name}").body
    return made


def test_a_manager_works_on_an_existing_cluster(server: Embedded, api: Api, programs: Path, tmp_path: Path) -> None:
    """Cache, leader election, finalizer, status patches, apply and owner references, over a crash of the server. How it lives for
    a day is for the long tests."""
    install(api)
    body = {"apiVersion": "post.example.com/v1", "kind": "Parcel", "metadata": {"name": "books"}, "spec": {"address": "here", "copies": 2}}
    with telling([programs / "manager", "-kubeconfig", server.kubeconfig], tmp_path / "manager.log") as manager:
        manager.wait_for("leading")
        assert api.request("POST", PARCELS, body).status == 201
        manager.wait_for("delivered")
        wait_until(lambda: parcel(api, "books").get("status", {}).get("made") == 2)
        made = parcel(api, "books")
        assert made["metadata"]["finalizers"] == ["post.example.com/delivery"]
        assert made["status"]["observedGeneration"] == made["metadata"]["generation"] == 1
        copies = api.request("GET", f"{MAPS}?labelSelector=parcel=books").body["items"]
        assert [each["metadata"]["ownerReferences"][0]["uid"] for each in copies] == [made["metadata"]["uid"]] * 2
        assert {entry["manager"]: entry["operation"] for entry in copies[0]["metadata"]["managedFields"]} == {"post-office": "Apply"}

        server.kill()
        api.close()
        server.start()
        merge = {"Content-Type": "application/merge-patch+json"}
        assert api.request("PATCH", f"{PARCELS}/books", {"spec": {"copies": 1}}, headers=merge).ok
        manager.wait_for("delivered", lambda line: line["count"] == 1)
        wait_until(lambda: len(api.request("GET", f"{MAPS}?labelSelector=parcel=books").body["items"]) == 1)
        assert api.request("DELETE", f"{PARCELS}/books").ok
        assert manager.wait_for("finalized")["name"] == "books"
        wait_until(lambda: api.request("GET", f"{PARCELS}/books").status == 404)
        # What it owned goes with it.
        wait_until(lambda: api.request("GET", f"{MAPS}?labelSelector=parcel=books").body["items"] == [])
        # Both caches were filled once, and went on after the crash where they were.
        for kind in ("parcels", "configmaps"):
            assert manager.count("stream", kind=kind, count=200) == 1
            assert manager.count("list", kind=kind) == 0
        assert manager.end()[-1]["event"] == "end"


def wait_until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end, "it did not become so in time"
        time.sleep(0.02)


def test_an_operator_goes_over_to_server_side_apply(server: Embedded, programs: Path) -> None:
    ran = subprocess.run([programs / "upgrade", "-kubeconfig", server.kubeconfig], check=True, capture_output=True, text=True)
    created, upgraded, applied, refused = (json.loads(line) for line in ran.stdout.splitlines())
    assert [entry.split()[:2] for entry in created["names"]] == [["post-office", "Update"]]
    assert [entry.split()[:2] for entry in upgraded["names"]] == [["post-office", "Apply"]]
    # What it no longer says is gone, and it alone owns the rest.
    assert applied["value"] == "map[kept:2]"
    assert applied["names"] == ['post-office Apply {"f:data":{"f:kept":{}}}']
    assert 'Apply failed with 1 conflict: conflict with "post-office": .data.kept' in refused["value"]


def test_a_suite_of_envtest_runs(binaries: Binaries, pytestconfig: pytest.Config, tmp_path: Path, record_property: Record) -> None:
    terminal = pytestconfig.pluginmanager.getplugin("terminalreporter")
    suite = built(SUITE, say=terminal.write_line if terminal else print) / "suite"
    assets = tmp_path / "assets"
    path = f"{binaries.kubectl.parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "CRD_DIRECTORY": str(OPERATOR / "crd")}
    subprocess.run([sys.executable, "-m", "paddock.app", "envtest-assets", str(assets)], check=True, capture_output=True, env=environment)
    for program in ("kube-apiserver", "etcd", "kubectl"):
        environment[f"TEST_ASSET_{program.upper().replace('-', '_')}"] = str(assets / program)
    ran = subprocess.run([suite, "-test.v"], capture_output=True, text=True, env=environment, timeout=180, cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for test in ("TestReconciler", "TestValidation", "TestUsers"):
        assert f"--- PASS: {test}" in ran.stdout
    said = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    record_property("milliseconds to start", min(line["millis"] for line in said if line["event"] == "started"))
