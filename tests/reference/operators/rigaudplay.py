"""The life of VirtRigaud's kinds on a real API server: Providers in Pods and by address, machines, snapshots, clones, migrations, sets."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import yaml

from tests.reference.client import MERGE_PATCH, Api, Json, Kubectl
from tests.reference.server import free_ports, launched
from tests.unit.dialects.virtrigaud.controllers.cloning import vmclone
from tests.unit.dialects.virtrigaud.controllers.moving import CLAIM, migration
from tests.unit.dialects.virtrigaud.controllers.snapshots import snapshot
from tests.unit.dialects.virtrigaud.controllers.test_sets import vmset
from tests.unit.kubevirt.controllers.rigaudharness import base, image, machine, network, provider, vmclass

PATIENCE = 60.0
# The operator's, for Providers on this host.
ARGUMENTS = ("--provider-from", "127.0.0.0/8", "--dialect", "virtrigaud")
DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments/virtrigaud-provider-default-podded"
_REVISIONS = "/apis/apps/v1/namespaces/default/controllerrevisions"
_ADDRESS = "virtrigaud.io/provider-address"
_PLAIN: Json = {"image": "example/provider:1", "service": {"tls": {"enabled": False}}}


@contextmanager
def serving_fake(directory: Path) -> Iterator[str]:
    """A provider with the fake driver; its address."""
    (port,) = free_ports(1)
    words = ("provider", "serve", "--type=fake", "--insecure", f"--port={port}", "--health-port=0")
    with launched([sys.executable, "-m", "paddock.app", *words], directory / "provider.log"):
        yield f"127.0.0.1:{port}"


@dataclass
class RigaudPlay:
    """The steps, each of which ends when everything is as the user wants it."""

    api: Api
    kubectl: Kubectl
    address: str
    # why nothing further can be expected of the operator

    def steps(self) -> Iterator[str]:
        """Play them one at a time; the last one leaves nothing behind."""
        for each in (self.create, self.retire, self.operate, self.move, self.change, self.delete):
            each()
            yield each.__name__

    # --- what users do ----------------------------------------------------------------------------------------------------

    def create(self) -> None:
        """Create Providers, one of which has Pods, and a machine with everything that it refers to."""
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "lab"}, "stringData": {"password": "p"}}
        policy = {"apiVersion": "infra.virtrigaud.io/v1beta1", "kind": "VMPlacementPolicy", "metadata": {"name": "apart"}, "spec": {}}
        served = [self._served(provider(each, runtime=_PLAIN)) for each in ("lab", "other")]
        self._apply(secret, *served, provider("podded"), vmclass(), image(), network(), policy)
        web = machine(placementRef={"name": "apart"}, lifecycle={"preStop": {"snapshot": {"name": "last"}}}, powerState="On")
        self._apply(web)
        self._until(lambda: bool(self._get(DEPLOYMENT)))
        self._until(lambda: self._is_ready("web"))

    def retire(self) -> None:
        """Serve the Provider with Pods elsewhere, after its image has changed."""
        self._merge(f"{base('Provider')}/podded", {"spec": {"runtime": {"image": "example/provider:2"}}})
        self._until(lambda: "provider:2" in str(self._get(DEPLOYMENT)))
        self._merge(f"{base('Provider')}/podded", self._served({"metadata": {}, "spec": {"runtime": _PLAIN}}))
        self._until(lambda: not self._get(DEPLOYMENT))

    def operate(self) -> None:
        """Take a snapshot, and clone."""
        self._apply(snapshot(), vmclone())
        self._until(lambda: self._phase("VMSnapshot", "s") == "Ready")
        self._until(lambda: self._phase("VMClone", "copy") == "Ready")
        schedule = {"enabled": True, "cronSpec": "* * * * *"}
        self._apply(snapshot("often", schedule=schedule, retentionPolicy={"maxCount": 1}))

    def move(self) -> None:
        """Begin to move the machine over a claim, and give up."""
        self._apply(migration(storage={"pvc": {"size": "1Gi"}}))
        self._until(lambda: bool(self._get(CLAIM)))
        # No Pod of these Providers mounts it.
        self._until(lambda: self._phase("VMMigration", "move") == "Validating")
        self._remove("VMMigration", "move")
        self._until(lambda: "deletionTimestamp" in self._get(CLAIM).get("metadata", {"deletionTimestamp": ""}))
        self._end_protection()

    def change(self) -> None:
        """Run a set through three revisions, of which it keeps one."""
        for cpu in (1, 2, 1, 3):
            self._apply(vmset(1, "many", template={"resources": {"cpu": cpu}, "powerState": "Off"}, revisionHistoryLimit=1))
            generation = self._get(f"{base('VMSet')}/many").get("metadata", {}).get("generation")
            self._until(partial(self._set_is_complete, generation))
        self._until(lambda: len(self._get(_REVISIONS)["items"]) == 2)

    def delete(self) -> None:
        """Delete everything."""
        kinds = (
            "VMMigration",
            "VMSet",
            "VMClone",
            "VMSnapshot",
            "VirtualMachine",
            "VMImage",
            "VMClass",
            "VMNetworkAttachment",
            "VMPlacementPolicy",
        )
        for kind in (*kinds, "Provider"):
            for each in self.api.request("GET", base(kind)).body["items"]:
                self._remove(kind, each["metadata"]["name"])
        self._end_protection()
        # What a garbage collector would do.
        self.kubectl.run("delete", "controllerrevisions,secrets,deployments,services", "--all", "--wait=false")
        self._until(lambda: not self._left())

    # --- what there is ----------------------------------------------------------------------------------------------------

    def _end_protection(self) -> None:
        """The API server protects claims, and the controller that ends the protection is not there."""
        self.api.request("PATCH", CLAIM, {"metadata": {"finalizers": None}}, headers=MERGE_PATCH)

    def _left(self) -> list[str]:
        kinds = ("VMSet", "VMClone", "VMSnapshot", "VirtualMachine", "VMMigration", "Provider")
        return [each["metadata"]["name"] for kind in kinds for each in self.api.request("GET", base(kind)).body["items"]]

    def _set_is_complete(self, generation: int) -> bool:
        status = self._get(f"{base('VMSet')}/many").get("status", {})
        return bool(status.get("observedGeneration") == generation and status.get("updatedReplicas") == status.get("readyReplicas") == 1)

    def _is_ready(self, name: str) -> bool:
        conditions = self._get(f"{base('VirtualMachine')}/{name}").get("status", {}).get("conditions", ())
        return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)

    def _phase(self, kind: str, name: str) -> str:
        return str(self._get(f"{base(kind)}/{name}").get("status", {}).get("phase", ""))

    def _get(self, path: str) -> Json:
        answer = self.api.request("GET", path)
        return answer.body if answer.ok else {}

    def _until(self, holds: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < end, self.kubectl.run("get", "virtrigaud,pvc,deployments", "-A", "-o", "yaml").output[-6000:]
            time.sleep(0.2)

    def _served(self, thing: Json) -> Json:
        return {**thing, "metadata": {**thing["metadata"], "annotations": {_ADDRESS: self.address}}}

    def _apply(self, *things: Json) -> None:
        self.kubectl.ok("apply", "-f", "-", stdin=yaml.safe_dump_all(things))

    def _merge(self, path: str, change: Json) -> None:
        assert self.api.request("PATCH", path, change, headers=MERGE_PATCH).ok

    def _remove(self, kind: str, name: str) -> None:
        path = f"{base(kind)}/{name}"
        self.api.request("DELETE", path)
        self._until(lambda: not self._get(path))
