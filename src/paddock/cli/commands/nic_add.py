"""`paddock nic add`: adds a network interface to a machine."""

from collections.abc import Sequence

from paddock.cli import arguments, changing, servers
from paddock.cli.arguments import Parser
from paddock.cli.console import Console
from paddock.fleet.machines import attachments, nics

_TEXT = """Add a network interface to a machine. NETWORK is a NetworkAttachmentDefinition, for Vitistack's machines a NetworkConfiguration,
or the word pod. A running guest sees an interface on a bridge at once, and any other after a restart."""


def parser() -> Parser:
    """Return the parser of the command."""
    options = arguments.parser("nic add", _TEXT, "[OPTIONS] [KIND/]NAME NETWORK", arguments.CHANGE_EXITS)
    arguments.add_machine(options, "Machine to change")
    options.add_argument("network", metavar="NETWORK", help="Network of the interface: lan, NAMESPACE/lan or pod")
    options.add_argument("--name", dest="interface", metavar="NIC", default="", help="Name of the interface (default: the network's)")
    options.add_argument("--mac", metavar="MAC", default="", help="MAC address (default: Paddock chooses one)")
    options.add_argument("--model", metavar="MODEL", default="", help="Model of the card: virtio, e1000e, rtl8139 (default: virtio)")
    options.add_argument("--restart", action="store_true", help="Restart the guest if it needs that to see the interface")
    arguments.add_dry_run(options)
    arguments.add_yes(options)
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    parsed = parser().parse_args(argv)
    name = parsed.interface or parsed.network.rpartition("/")[2]
    wish = nics.NicWish(name=name, network=parsed.network, mac=parsed.mac, model=parsed.model)
    done = f"has the interface {name}"
    return servers.serve(
        changing.change(
            parsed,
            console,
            lambda machine: nics.added(machine, wish),
            done,
            check=lambda server, machine: attachments.check(server, machine, parsed.network),
        )
    )
