"""VirtRigaud's objects at one API server, whoever's controllers act on them."""

import base64
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.reference.client import MERGE_PATCH, Api, Json
from tests.unit.kubevirt.controllers.rigaudharness import API, base

PATIENCE = 300.0
SECRETS = "/api/v1/namespaces/default/secrets"
KINDS = ("VMClone", "VMSnapshot", "VirtualMachine", "VMImage", "VMClass", "VMNetworkAttachment", "Provider")
# The name that certificates of a provider have, upstream's and ours.
SERVER_NAME = "virtrigaud-provider-default-{}.default.svc.cluster.local"


@dataclass
class Objects:
    """What a user makes and looks at."""

    api: Api

    def make(self, kind: str, name: str, annotations: dict[str, str] | None = None, **spec: object) -> None:
        """Create an object."""
        metadata: Json = {"name": name, **({"annotations": annotations} if annotations else {})}
        said = self.api.request("POST", base(kind), {"apiVersion": API, "kind": kind, "metadata": metadata, "spec": spec})
        assert said.ok, said.message

    def secret(self, name: str, folder: Path | None = None) -> None:
        """Create a Secret with the files of a folder; one that is there stays."""
        files = sorted(folder.iterdir()) if folder is not None else []
        data = {each.name: base64.b64encode(each.read_bytes()).decode() for each in files}
        said = self.api.request("POST", SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data})
        assert said.ok or said.status == 409, said.message

    def get(self, kind: str, name: str) -> Json:
        """Return an object, empty when it is not there."""
        said = self.api.request("GET", f"{base(kind)}/{name}")
        return said.body if said.ok else {}

    def status(self, kind: str, name: str) -> Json:
        """Return the status of an object."""
        return dict(self.get(kind, name).get("status", {}))

    def list(self, kind: str) -> list[Json]:
        """Return all objects of a kind."""
        return list(self.api.request("GET", base(kind)).body["items"])

    def change(self, kind: str, name: str, **spec: object) -> None:
        """Merge a change into the spec of an object."""
        said = self.api.request("PATCH", f"{base(kind)}/{name}", {"spec": spec}, headers=MERGE_PATCH)
        assert said.ok, said.message

    def annotate(self, kind: str, name: str, **annotations: str) -> None:
        """Annotate an object; underscores of names are slashes."""
        given = {key.replace("_", "/"): value for key, value in annotations.items()}
        said = self.api.request("PATCH", f"{base(kind)}/{name}", {"metadata": {"annotations": given}}, headers=MERGE_PATCH)
        assert said.ok, said.message

    def until(self, kind: str, name: str, holds: Callable[[Json], object]) -> Json:
        """Return the status of an object as soon as something holds of it."""
        end = time.monotonic() + PATIENCE
        while not holds(found := self.status(kind, name)):
            assert time.monotonic() < end, f"{kind} {name}: {yaml.safe_dump(found)}"
            time.sleep(0.2)
        return found

    def delete(self, kind: str, name: str) -> None:
        """Delete an object, and wait until it is gone."""
        self.api.request("DELETE", f"{base(kind)}/{name}")
        end = time.monotonic() + PATIENCE
        while found := self.get(kind, name):
            assert time.monotonic() < end, yaml.safe_dump(found)
            time.sleep(0.2)

    def clear(self) -> None:
        """Delete everything, machines before what they need."""
        for kind in KINDS:
            for each in self.list(kind):
                self.delete(kind, each["metadata"]["name"])


def condition(status: Json, kind: str) -> Json:
    """Return a condition of a status, empty when it is not there."""
    return next((each for each in status.get("conditions", ()) if each["type"] == kind), {})


def is_ready(status: Json) -> bool:
    """Return whether a status says so by its condition."""
    return condition(status, "Ready").get("status") == "True"


def has_power(state: str) -> Callable[[Json], bool]:
    """Return what holds of a machine in this power state."""
    return lambda status: status.get("powerState") == state


def is_powered(state: str) -> Callable[[Json], bool]:
    """Return what holds of a machine that is ready in this power state."""
    return lambda status: bool(status.get("id")) and status.get("powerState") == state and is_ready(status)


def has_phase(phase: str) -> Callable[[Json], bool]:
    """Return what holds of an object in this phase."""
    return lambda status: status.get("phase") == phase
