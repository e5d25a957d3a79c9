"""The life of Kubermatic's forms: users write them in one API, and the operator writes KubeVirt's into the cluster."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import yaml

from tests.reference.client import Api, Json, Kubectl

PATIENCE = 60.0
VIRTUAL_MACHINES = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines"
VOLUMES = "/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes"
SOURCES = "/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datasources"
POOLS = "/apis/pool.kubevirt.io/v1beta1/namespaces/default/virtualmachinepools"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
_DEVIATIONS = Path(__file__).with_name("deviations.yaml")


@dataclass
class KubermaticPlay:
    """The steps, each of which ends when the cluster is as the user wants it."""

    cluster: Api
    front: Kubectl
    # PEM, in base64
    authorities: tuple[str, str]

    def steps(self) -> Iterator[str]:
        """Play them one at a time; the last one leaves nothing behind."""
        for each in (self.create, self.change, self.mend, self.delete):
            each()
            yield each.__name__

    def create(self) -> None:
        """Create machines, pools, an image that is imported once, and sources with an authority."""
        for name in ("virtualmachine", "pool", "nested-pool"):
            self._apply(_example(name))
        # A machine that is written with two spellings of a field is refused when it is applied again.
        deviations = yaml.safe_load_all(_DEVIATIONS.read_text().replace("AUTHORITY", self.authorities[0]))
        self._apply(yaml.safe_dump_all(each for each in deviations if each["metadata"]["name"] != "odd"))
        local = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataSource", "metadata": {"name": "local"}}
        self._apply(yaml.safe_dump({**local, "spec": {"source": {"pvc": {"name": "debian", "namespace": "default"}}}}))
        paths = (f"{VIRTUAL_MACHINES}/my-vm-with-http-data-volume", f"{POOLS}/my-vm-http-pool", f"{POOLS}/workers", f"{SOURCES}/local")
        self._until(lambda: all(map(self._get, (*paths, f"{CONFIG_MAPS}/trusted-ca", f"{VOLUMES}/debian-golden"))))

    def change(self) -> None:
        """Change machines, and the source that a cluster keeps."""
        for name in ("virtualmachine", "pool"):
            self._apply(_example(name).replace("cores: 1", "cores: 2"))
        trusted = {"spec": {"source": {"http": {"certConfig": {"caBundle": self.authorities[1]}}}}}
        self.front.ok("patch", "datasource", "trusted", "--type=merge", "-p", json.dumps(trusted))
        self.front.ok("patch", "datasource", "local", "--type=merge", "-p", '{"spec":{"source":{"pvc":{"name":"debian-13"}}}}')
        self._until(lambda: self._cores(self._get(f"{VIRTUAL_MACHINES}/my-vm-with-http-data-volume").get("spec", {})) == 2)
        self._until(lambda: "debian-13" in str(self._get(f"{SOURCES}/local")))

    def mend(self) -> None:
        """Delete a machine behind the user's back."""
        path = f"{VIRTUAL_MACHINES}/my-vm-with-http-data-volume"
        before = self._get(path).get("metadata", {}).get("uid")
        self.cluster.request("DELETE", path)
        self._until(lambda: self._get(path).get("metadata", {}).get("uid") not in (None, before))

    def delete(self) -> None:
        """Delete everything."""
        self.front.ok("delete", "virtualmachines,virtualmachinepools,datasources", "--all", "--wait=false")
        self._until(lambda: not any(self.cluster.request("GET", each).body["items"] for each in (VIRTUAL_MACHINES, POOLS, SOURCES)))
        self._until(lambda: not self._get(f"{CONFIG_MAPS}/trusted-ca") and not self._get(f"{VOLUMES}/debian-golden"))

    def _cores(self, spec: Json) -> int:
        return int(spec.get("template", {}).get("spec", {}).get("domain", {}).get("cpu", {}).get("cores", 0))

    def _get(self, path: str) -> Json:
        answer = self.cluster.request("GET", path)
        return answer.body if answer.ok else {}

    def _apply(self, text: str) -> None:
        self.front.ok("apply", "-f", "-", stdin=text)

    def _until(self, holds: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < end, self.front.run("get", "vm,vmpool,datasource", "-o", "yaml").output[-6000:]
            time.sleep(0.2)


def _example(name: str) -> str:
    return (files("paddock.dialects.kubermatic") / "examples" / f"{name}.yaml").read_text()
