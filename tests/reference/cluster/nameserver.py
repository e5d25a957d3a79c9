"""The name server of the reference cluster: Services and what is behind headless ones, and nothing of the world outside.

`python -m tests.reference.cluster.nameserver KUBECONFIG` listens on the node's address; the Service `kube-dns` leads pods to it.
"""

import asyncio
import sys
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import orjson

from paddock.base.clock import SystemClock
from paddock.base.jsondata import Data
from paddock.engine.networks.dns import Zone
from paddock.engine.networks.dnsserver import DnsServer
from paddock.kubernetes.client import kubeconfig
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.http.https import Https
from paddock.kubernetes.client.target import Key, plain
from paddock.kubernetes.runtime.controller import DONE, Controller, Outcome
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.program import ControllerManager
from tests.reference.cluster import control
from tests.reference.cluster.forward import python
from tests.reference.cluster.namespace import ADDRESS, Machine
from tests.reference.server import write_kubeconfig

_SUFFIX = "cluster.local"
_SERVICES = plain("", "v1", "services", "Service")
_SLICES = plain("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
_NAME = "kube-dns"


def install(machine: Machine) -> None:
    """Start the server, and the Service with the address that the kubelet gives to pods."""
    access = control.access(machine)
    inside = write_kubeconfig(machine.directory / "nameserver.kubeconfig", control.URL, access.token, access.authority)
    machine.start_outside("nameserver", *python(__name__, str(inside)), on_network=True)
    metadata = {"name": _NAME, "namespace": "kube-system"}
    ports = [{"name": name, "port": 53, "protocol": name.upper()} for name in ("udp", "tcp")]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"clusterIP": control.DNS, "ports": ports}}
    labelled = {**metadata, "labels": {"kubernetes.io/service-name": _NAME}}
    endpoints = [{"addresses": [ADDRESS], "conditions": {"ready": True}}]
    slices = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": labelled, "addressType": "IPv4"}
    control.apply(machine, service, {**slices, "endpoints": endpoints, "ports": ports})


def names(services: Iterable[Data], slices: Iterable[Data]) -> Mapping[str, Collection[str]]:
    """Return the addresses of every name: of a Service its own, of a headless one those of its ready endpoints and their host names."""
    found: dict[str, set[str]] = {}
    headless = set()
    for service in services:
        name, address = _of_service(service["metadata"], service["metadata"]["name"]), service["spec"].get("clusterIP", "None")
        if address in ("None", ""):
            headless.add(name)
        else:
            found[name] = {address}
    for each in slices:
        name = _of_service(each["metadata"], each["metadata"].get("labels", {}).get("kubernetes.io/service-name", ""))
        for endpoint in each.get("endpoints") or () if name in headless else ():
            if endpoint.get("conditions", {}).get("ready", True):
                found.setdefault(name, set()).update(endpoint["addresses"])
                if "hostname" in endpoint:
                    found.setdefault(f"{endpoint['hostname']}.{name}", set()).update(endpoint["addresses"])
    return {name: sorted(addresses) for name, addresses in found.items()}


def _of_service(metadata: Data, name: str) -> str:
    return f"{name}.{metadata['namespace']}.svc.{_SUFFIX}"


class NameServer:
    """The server, and the controllers that keep its zone."""

    def __init__(self, client: Client) -> None:
        machinery = Machinery()
        self.program = ControllerManager(client, component="nameserver", instance="nameserver", machinery=machinery)
        self._services, self._slices = (self.program.informers.of(each) for each in (_SERVICES, _SLICES))
        for name, informer in (("services", self._services), ("endpoints", self._slices)):
            self.program.add(Controller(name, informer, self._renew, machinery=machinery))
        self._zone = Zone(_SUFFIX)
        self.server = DnsServer(lambda: self._zone, lambda: (), seconds=time.monotonic)

    async def _renew(self, key: Key) -> Outcome:
        """The zone is small: one change makes all of it anew."""
        services, slices = ([orjson.loads(seen.raw) for seen in informer.cache] for informer in (self._services, self._slices))
        self._zone = Zone.of(_SUFFIX, (), names(services, slices))
        return DONE


async def _run(access: Path) -> None:
    async with Client(Https(kubeconfig.find({}, SystemClock(), explicit=access))) as client:
        nameserver = NameServer(client)
        await nameserver.server.listen(ADDRESS)
        await nameserver.program.run()


if __name__ == "__main__":
    asyncio.run(_run(Path(sys.argv[1])))
