"""A real kube-controller-manager beside the server: it leads, sees every kind it asks for, works, and nobody undoes anybody's work."""

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.reference.build import built
from tests.reference.client import Api, Json
from tests.reference.embedded import Embedded
from tests.reference.recipes import CONTROLLERS
from tests.reference.server import launched

pytestmark = pytest.mark.reference
PATIENCE = 90.0
# What its log says of a kind that is not served, or of a right that is missing.
WRONG = re.compile(r"forbidden|Failed to watch|could not find the requested resource|no matches for kind|cannot (list|watch|get) resource")
NAMESPACE = "/api/v1/namespaces/default"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"


@pytest.fixture
def api(server: Embedded) -> Iterator[Api]:
    api = Api(server.access)
    yield api
    api.close()


def until(holds: Callable[[], object], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.2)


def phase(api: Api, path: str) -> str:
    return str((api.request("GET", path).body.get("status") or {}).get("phase"))


def made(api: Api, path: str, body: Json) -> None:
    answer = api.request("POST", path, body)
    assert answer.ok, answer.message


@pytest.mark.spec("kube-api", 144)
def test_a_controller_manager_leads_and_sees_everything(server: Embedded, api: Api, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    terminal = pytestconfig.pluginmanager.getplugin("terminalreporter")
    program = built(CONTROLLERS, say=terminal.write_line if terminal else print) / "kube-controller-manager"
    log = tmp_path / "controllers.log"
    # Each controller comes as its own ServiceAccount, with the rights of its own role.
    options = ("--use-service-account-credentials=true", "--leader-elect=true", "--secure-port=0", "--v=2")
    with launched([str(program), f"--kubeconfig={server.kubeconfig}", *options], log):
        lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager"
        until(lambda: (api.request("GET", lease).body.get("spec") or {}).get("holderIdentity"), "nobody leads")

        def is_synced() -> bool:
            waiting, synced = (log.read_text().count(text) for text in ("Waiting for caches to sync", "Caches are synced"))
            return waiting >= 30 and waiting == synced

        until(is_synced, "not every cache is synced")
        made(api, f"{NAMESPACE}/services", {"metadata": {"name": "web"}, "spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]}})
        made(api, f"{NAMESPACE}/services", {"metadata": {"name": "own"}, "spec": {"ports": [{"port": 80}]}})
        subset = {"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80}]}
        made(api, f"{NAMESPACE}/endpoints", {"metadata": {"name": "own"}, "subsets": [subset]})
        spec: Json = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
        volume = {"metadata": {"name": "v"}, "spec": {**spec, "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/tmp/x"}}}
        made(api, "/api/v1/persistentvolumes", volume)
        claim = {"metadata": {"name": "c"}, "spec": {**spec, "resources": {"requests": {"storage": "1Gi"}}}}
        made(api, f"{NAMESPACE}/persistentvolumeclaims", claim)
        until(lambda: phase(api, f"{NAMESPACE}/persistentvolumeclaims/c") == "Bound", "the claim is not bound")

        def versions() -> dict[str, str]:
            """The version of every object that both sides look after."""
            paths = (SLICES, f"{NAMESPACE}/endpoints", "/api/v1/persistentvolumes", f"{NAMESPACE}/persistentvolumeclaims")
            found = [each["metadata"] for path in paths for each in api.request("GET", path).body["items"]]
            return {each["uid"]: each["resourceVersion"] for each in found}

        def is_quiet() -> bool:
            before = versions()
            time.sleep(3)
            return before == versions()

        until(is_quiet, "two controllers undo each other's work")
        services = [each["metadata"]["labels"]["kubernetes.io/service-name"] for each in api.request("GET", SLICES).body["items"]]
        assert sorted(services) == ["kubernetes", "own", "web"]
    assert not [line for line in log.read_text().splitlines() if WRONG.search(line)]
