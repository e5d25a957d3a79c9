"""Services for machines, as `virtctl expose` makes them: they select the machine by the label that its instances and their pods have."""

import asyncio
from collections.abc import Sequence

import orjson

from paddock.base.jsondata import Data
from paddock.fleet.diagnosis.scene import at, entries, texts
from paddock.fleet.guests import forwarding
from paddock.fleet.guests.guest import GuestAccess

_LABEL = "vm.kubevirt.io/name"
_PAUSE_SECONDS = 0.3


def port(text: str, target: int = 0) -> Data:
    """Return the port of a Service for `PORT[:GUEST][/udp]`."""
    parsed = forwarding.parse(text, "")
    if parsed.address or not parsed.outside:
        raise forwarding.BadPort(f'"{text}" is no port of a Service', fix="write PORT[:GUEST][/udp], such as 80:8080")
    return {
        "name": f"{parsed.protocol}-{parsed.outside}",
        "port": parsed.outside,
        "targetPort": target or parsed.inside,
        "protocol": parsed.protocol.upper(),
    }


def service(guest: GuestAccess, name: str, kind: str, ports: Sequence[Data]) -> Data:
    spec = {"type": kind, "selector": {_LABEL: guest.key.name}, "ports": list(ports)}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": guest.key.namespace}, "spec": spec}


async def make(guest: GuestAccess, wanted: Data, seconds: float, *, dry_run: bool = False) -> tuple[Data, list[str]]:
    """Make a Service, and wait for its addresses so long; return both. With `dry_run` the server only checks it."""
    path = f"/api/v1/namespaces/{guest.key.namespace}/services"
    query = (("dryRun", "All"),) if dry_run else ()
    made: Data = orjson.loads(await guest.client.request("POST", path, query, orjson.dumps(wanted)))
    if dry_run:
        return made, []
    hosts = await _hosts(guest) if texts(made, "spec", "type") == "NodePort" else []
    end = guest.server.clock.seconds() + seconds
    while not (found := addresses(made, hosts)) and guest.server.clock.seconds() < end:
        await asyncio.sleep(_PAUSE_SECONDS)
        made = orjson.loads(await guest.client.request("GET", f"{path}/{wanted['metadata']['name']}"))
    return made, found


async def _hosts(guest: GuestAccess) -> list[str]:
    """The addresses of the nodes."""
    nodes = orjson.loads(await guest.client.request("GET", "/api/v1/nodes"))
    every = [each for node in nodes["items"] for each in entries(node, "status", "addresses")]
    return [texts(each, "address") for each in every if each.get("type") == "InternalIP"]


def addresses(made: Data, hosts: Sequence[str]) -> list[str]:
    """Return the addresses that a Service is reached at, with ports; none if it has none yet."""
    kind, ports = texts(made, "spec", "type"), entries(made, "spec", "ports")
    if kind == "NodePort":
        return [f"{_host(host)}:{each['nodePort']}" for each in ports if each.get("nodePort") for host in hosts[:1] or ["NODE"]]
    if kind == "LoadBalancer":
        found = [texts(each, "ip") or texts(each, "hostname") for each in entries(made, "status", "loadBalancer", "ingress")]
    else:
        found = [ip for ip in (at(made, "spec", "clusterIP"),) if ip and ip != "None"]
    return [f"{_host(ip)}:{each['port']}" for ip in found for each in ports]


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address
