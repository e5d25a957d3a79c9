"""`paddock expose`: a Service that leads to ports of a machine."""

import argparse
from collections.abc import Sequence
from typing import Any

from paddock.cli import arguments, servers
from paddock.cli import guestcommands as commandline
from paddock.cli.console import Console
from paddock.fleet.documents import report
from paddock.fleet.guests import exposing

_TEXT = """Make a Service that leads to ports of a machine, and print its address. A ClusterIP Service is for guests of this server,
NodePort opens a port of the host, and LoadBalancer takes an address of the host."""
_TYPES = ("ClusterIP", "NodePort", "LoadBalancer")
_EXITS = {0: "success", 1: "the Service has no address yet", 2: "failure, or wrong usage"}


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("expose", _TEXT, "[OPTIONS] [KIND/]NAME --port PORT[:GUEST][/udp]", _EXITS)
    arguments.add_machine(options, commandline.MACHINE_TEXT)
    text = "Port of the Service, with the guest's after a colon if it is another; repeatable"
    options.add_argument("--port", metavar="PORT[:GUEST][/udp]", action="append", default=[], help=text)
    options.add_argument("--target-port", metavar="PORT", type=int, default=0, help="Port of the guest, for a single --port")
    arguments.add_choice(options, ("--type",), _TYPES, "Type of the Service (default: ClusterIP)", "ClusterIP")
    options.add_argument("--name", dest="service", metavar="NAME", default="", help="Name of the Service (default: the machine's)")
    arguments.add_timeout(options, 30, "Longest time to wait for an address")
    arguments.add_dry_run(options)
    arguments.add_format(options, formats=("text", "json", "yaml", "name"))
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    options = parser()
    parsed = options.parse_args(argv)
    if not parsed.port:
        options.error("name a port: --port 80, or --port 80:8080")
    if parsed.target_port and (len(parsed.port) > 1 or ":" in parsed.port[0]):
        options.error("--target-port goes with a single --port without a colon")
    service, addresses = servers.serve(_expose(parsed, console))
    if parsed.output == "name":
        console.out(f"service/{service['metadata']['name']}\n")
    elif parsed.output != "text" or parsed.dry_run:
        console.out(report.structured(service, "yaml" if parsed.output == "text" else parsed.output))
    else:
        for each in addresses:
            console.out(f"{each}\n")
        if not addresses:
            console.say(f"paddock: service/{service['metadata']['name']} has no address yet; `kubectl get service` shows it")
            return 1
    return 0


async def _expose(parsed: argparse.Namespace, console: Console) -> tuple[dict[str, Any], list[str]]:
    async with commandline.reached(parsed, console, "expose ports", running=False) as guest:
        ports = [exposing.port(text, parsed.target_port) for text in parsed.port]
        wanted = exposing.service(guest, parsed.service or guest.name, parsed.type, ports)
        return await exposing.make(guest, wanted, parsed.timeout, dry_run=parsed.dry_run)
