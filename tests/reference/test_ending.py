"""Namespaces and definitions as the real kubectl sees them come and go on the embedded server."""

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.reference import projects
from tests.reference.build import Binaries
from tests.reference.client import Kubectl, Ran
from tests.reference.embedded import serving

pytestmark = pytest.mark.reference

HELD = """
apiVersion: vitistack.io/v1alpha1
kind: NetworkConfiguration
metadata: {name: network, namespace: team, finalizers: [example.com/hold]}
spec: {}
"""


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end, "it did not come to that in time"
        time.sleep(0.05)


@pytest.mark.spec("kube-api", 101)
def test_a_deletion_waits_for_the_last_finalizer(binaries: Binaries, tmp_path: Path) -> None:
    with serving(tmp_path / "server") as server:
        kubectl = Kubectl(binaries.kubectl, server.access, tmp_path)
        kubectl.ok("create", "namespace", "team")
        kubectl.ok("create", "-f", "-", stdin=HELD)
        went: list[Ran] = []
        waiting = threading.Thread(target=lambda: went.append(kubectl.run("delete", "namespace", "team", "--wait", "--timeout=60s")))
        waiting.start()

        def conditions() -> dict[str, tuple[str, str, str]]:
            found = json.loads(kubectl.ok("get", "namespace", "team", "-o", "json"))["status"].get("conditions") or ()
            return {each["type"]: (each["status"], each["reason"], each["message"]) for each in found}

        until(lambda: "NamespaceFinalizersRemaining" in conditions())
        told = conditions()
        assert told["NamespaceContentRemaining"] == (
            *("True", "SomeResourcesRemain"),
            "Some resources are remaining: networkconfigurations.vitistack.io has 1 resource instances",
        )
        assert told["NamespaceFinalizersRemaining"] == (
            *("True", "SomeFinalizersRemain"),
            "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances",
        )
        assert {told[each][0] for each in ("NamespaceDeletionDiscoveryFailure", "NamespaceDeletionContentFailure")} == {"False"}
        assert waiting.is_alive() and not went
        released = time.monotonic()
        kubectl.ok("patch", "networkconfigurations", "network", "-n", "team", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
        waiting.join(30)
        assert not waiting.is_alive() and time.monotonic() - released < 20
        assert (went[0].code, went[0].output) == (0, 'namespace "team" deleted\n'), went[0].errors
        assert "not found" in kubectl.run("get", "namespace", "team").errors


def test_installers_of_our_own_kinds_go_on(binaries: Binaries, tmp_path: Path) -> None:
    """The definitions of KubeVirt, applied as its manifests are; those too large for an annotation are applied on the server."""
    with serving(tmp_path / "server") as server:
        kubectl = Kubectl(binaries.kubectl, server.access, tmp_path)
        listed = kubectl.ok("get", "crd")
        assert "virtualmachines.kubevirt.io" in listed
        documents = [document for origin, document in projects.definitions() if origin.startswith("kubevirt.io/")]
        manifest = tmp_path / "kubevirt-crds.json"
        manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
        for _ in range(2):
            applied = kubectl.run("apply", "--server-side", "-f", str(manifest))
            assert applied.code == 0, applied.errors
            assert "virtualmachines.kubevirt.io is served by Paddock itself" in applied.errors
        names = [f"crd/{document['metadata']['name']}" for document in documents]
        kubectl.ok("wait", "--for=condition=Established", "--timeout=10s", *names)
        small = tmp_path / "small.json"
        small.write_text(json.dumps(next(each for each in documents if each["metadata"]["name"].startswith("virtualmachineclones."))))
        assert kubectl.run("apply", "-f", str(small)).code == 0
        refused = kubectl.run("delete", "-f", str(small))
        assert refused.code == 1 and "this kind is a part of Paddock itself" in refused.errors
