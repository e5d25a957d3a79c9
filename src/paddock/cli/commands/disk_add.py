"""`paddock disk add`: adds a disk to a machine."""

from collections.abc import Sequence

from paddock.cli import arguments, changing, servers
from paddock.cli.arguments import Parser
from paddock.cli.console import Console
from paddock.fleet.machines import disks

_TEXT = (
    """Add a disk to a machine: an empty one of SIZE, or with --claim one that exists. Where it can, the running guest sees it at once."""
)


def parser() -> Parser:
    """Return the parser of the command."""
    options = arguments.parser("disk add", _TEXT, "[OPTIONS] [KIND/]NAME DISK (SIZE | --claim CLAIM)", arguments.CHANGE_EXITS)
    arguments.add_machine(options, "Machine to change")
    options.add_argument("disk", metavar="DISK", help="Name of the new disk; Linux finds it as /dev/disk/by-id/virtio-DISK")
    options.add_argument("size", metavar="SIZE", nargs="?", default="", help="Size of the new disk, such as 20Gi")
    options.add_argument("--claim", metavar="CLAIM", default="", help="PersistentVolumeClaim to use (KubeVirt)")
    options.add_argument("--storage-class", metavar="CLASS", default="", help="StorageClass of the new disk (default: the server's)")
    options.add_argument("--bus", metavar="BUS", default="", help="Bus of the disk: virtio, scsi, sata (default: virtio)")
    options.add_argument("--restart", action="store_true", help="Restart the guest if it needs that to see the disk")
    arguments.add_dry_run(options)
    arguments.add_yes(options)
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    options = parser()
    parsed = options.parse_args(argv)
    if bool(parsed.size) == bool(parsed.claim):
        options.error("give a size for an empty disk, or --claim CLAIM for one that exists")
    wish = disks.DiskWish(name=parsed.disk, size=parsed.size, claim=parsed.claim, storage_class=parsed.storage_class, bus=parsed.bus)
    return servers.serve(changing.change(parsed, console, lambda machine: disks.added(machine, wish), f"has the disk {parsed.disk}"))
