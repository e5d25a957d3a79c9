"""A `paddock up` as KubeVirt's functional tests find an installation: with a registry of guests, settings, and stub objects.

Everything lies in one folder, or in that which the tests know on the host, and is gone when the block ends, guests and networks included.
A stub is made only where the server has no such object by itself, so it vanishes once Paddock has one.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.host.guests import registry_in
from tests.reference.client import MERGE_PATCH, Answer, Api
from tests.reference.embedded import Embedded, serving
from tests.reference.functional import guests
from tests.reference.server import POLL_SECONDS, START_SECONDS

Json = dict[str, Any]
NAMESPACE = "kubevirt"
# The name that the tests know the registry by; a mirror leads to ours.
REGISTRY = "registry:5000"
TAG = "devel"
STORAGE_CLASS = "paddock"
# Where the tests have disks on the host, and the one that is there before them; the number is that of their process.
HOST_IMAGES = Path("/tmp/hostImages")
ALPINE_ON_HOST = HOST_IMAGES / "alpine1"
# What the tests read of the storage: each of their wishes is granted by the class that is there.
STORAGE = dict.fromkeys(
    (
        *("storageClassRhel", "storageClassWindows", "storageRWOFileSystem", "storageRWOBlock", "storageRWXFileSystem"),
        *("storageRWXBlock", "storageSnapshot", "storageVMState", "storageClassCSI"),
    ),
    STORAGE_CLASS,
)
# The feature gates that KubeVirt's own runs switch on, but for those that Paddock has nothing for.
FEATURE_GATES = (
    *("ExperimentalIgnitionSupport", "Sidecar", "IncrementalBackup", "HostDisk", "EnableVirtioFsStorageVolumes", "DownwardMetrics"),
    *("WorkloadEncryptionSEV", "ObjectGraph", "DeclarativeHotplugVolumes", "UtilityVolumes", "RebootPolicy", "ContainerPathVolumes"),
)
_SETTINGS: Json = {
    "configuration": {
        "developerConfiguration": {"useEmulation": True, "featureGates": list(FEATURE_GATES)},
        "vmRolloutStrategy": "LiveUpdate",
    },
    "workloadUpdateStrategy": {"workloadUpdateMethods": ["LiveMigrate"]},
}


@dataclass(frozen=True)
class Stub:
    """An object that a cluster with KubeVirt has and this server may lack."""

    why: str
    collection: str
    body: Mapping[str, Any]

    @property
    def title(self) -> str:
        """Its kind and name."""
        return f"{self.body['kind']} {self.body['metadata']['name']}"


def _backup_kind(kind: str) -> Stub:
    plural = f"{kind.lower()}s"
    version = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    return Stub(
        f"The clean-up after each spec deletes all {plural}, and fails where there is no such kind.",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.backup.kubevirt.io"},
            "spec": {"group": "backup.kubevirt.io", "scope": "Namespaced", "names": names, "versions": [version]},
        },
    )


STUBS = (
    Stub(
        "The tests ask the Pod of virt-handler whether the cluster has IPv4 and IPv6.",
        f"/api/v1/namespaces/{NAMESPACE}/pods",
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "virt-handler", "namespace": NAMESPACE, "labels": {"kubevirt.io": "virt-handler"}},
            "spec": {"containers": [{"name": "virt-handler", "image": f"{REGISTRY}/kubevirt/virt-handler:{TAG}"}]},
            "status": {"phase": "Running", "podIP": "192.0.2.1", "podIPs": [{"ip": "192.0.2.1"}]},
        },
    ),
    Stub(
        "Network settings of guests name the address of the cluster's DNS.",
        "/api/v1/namespaces/kube-system/services",
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "kube-dns", "namespace": "kube-system"},
            "spec": {"ports": [{"name": "dns", "port": 53, "protocol": "UDP"}]},
        },
    ),
    _backup_kind("VirtualMachineBackup"),
    _backup_kind("VirtualMachineBackupTracker"),
)


@dataclass(frozen=True)
class Installation:
    """A server that the tests can be started against."""

    server: Embedded
    # what was made because the server had no such object
    stubs: tuple[Stub, ...]

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.server.kubeconfig


@contextmanager
def installed() -> Iterator[Installation]:
    """An installation in a folder of its own, for the length of the block."""
    # Sockets of guests have short paths.
    with tempfile.TemporaryDirectory(prefix="pdft-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        (root := Path(folder, "installation")).mkdir()
        # QEMU runs as a user of its own, below this directory.
        for each in (Path(folder), root):
            each.chmod(0o711)
        # The claims of this server are no business of the host's own.
        with patch.dict(os.environ, PADDOCK_HOST_DIR=str(Path(folder, "claims"))), running(root) as one:
            yield one


@contextmanager
def running(root: Path) -> Iterator[Installation]:
    """An installation in a folder, for the length of the block."""
    for name in ("registry", "host-disks"):
        (root / name).mkdir()
    with registry_in(root / "registry") as registry:
        guests.images(registry, "kubevirt", TAG)
        shutil.rmtree(HOST_IMAGES, ignore_errors=True)
        guests.host_image(ALPINE_ON_HOST)
        arguments = (
            "--workloads=stored",
            *("--registry-mirror", f"{REGISTRY}=http://{registry.address}", "--image-from", "127.0.0.1"),
            *("--insecure-registry", REGISTRY, "--host-disks", str(root / "host-disks"), "--host-disks", str(HOST_IMAGES)),
            *("--memory-overcommit", "4"),
        )
        try:
            with serving(root / "server", *arguments, command="up") as server:
                yield Installation(server, _prepared(server))
        finally:
            purge = ("down", "--purge", "--delete-data", "--yes", "--dir", str(root / "server"))
            subprocess.run([sys.executable, "-m", "paddock.app", *purge], check=True, stdout=subprocess.DEVNULL)
            shutil.rmtree(HOST_IMAGES)


def _prepared(server: Embedded) -> tuple[Stub, ...]:
    api = Api(server.access)
    try:
        kubevirt = f"/apis/kubevirt.io/v1/namespaces/{NAMESPACE}/kubevirts/kubevirt"
        # The server is ready before its controllers have made the object of the installation.
        end = time.monotonic() + START_SECONDS
        while not api.request("GET", kubevirt).ok and time.monotonic() < end:
            time.sleep(POLL_SECONDS)
        _must(api.request("PATCH", kubevirt, {"spec": _SETTINGS}, headers=MERGE_PATCH))
        return tuple(stub for stub in STUBS if _made(api, stub))
    finally:
        api.close()


def _made(api: Api, stub: Stub) -> bool:
    path = f"{stub.collection}/{stub.body['metadata']['name']}"
    if api.request("GET", path).ok:
        return False
    _must(api.request("POST", stub.collection, dict(stub.body)))
    if status := stub.body.get("status"):
        _must(api.request("PATCH", f"{path}/status", {"status": status}, headers=MERGE_PATCH))
    return True


def _must(answer: Answer) -> None:
    if not answer.ok:
        raise AssertionError(answer.message)
