"""`paddock run`: makes machines from an image in a few words, waits until they are usable, and says how to get in."""

import argparse
import asyncio
from collections.abc import Sequence

from paddock.app.running import wishes
from paddock.app.running.wishes import RunPlan
from paddock.cli import arguments
from paddock.cli.commands.console import attach
from paddock.cli.console import Console
from paddock.cli.exits import FINDINGS, GOOD
from paddock.cli.output import print_objects
from paddock.fleet.creation.newmachine import manifests
from paddock.kubernetes import catalog

_TEXT = """Make a machine from an image, wait until it is usable, and say how to get in. IMAGE is `tiny`, a name of
`paddock image ls --known`, a container disk (quay.io/containerdisks/fedora:40), an http(s) URL or a file of this host.
A machine is usable once its guest agent is connected or its SSH server answers."""
_EXITS = {
    0: "the machines are usable, or made with --no-wait",
    1: "a machine did not become usable",
    2: "wrong usage, or no answer from the server",
}


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("run", _TEXT, "[OPTIONS] IMAGE", _EXITS)
    add = options.add_argument
    add("image", metavar="IMAGE", help="Image to start from")
    add("-n", "--name", metavar="NAME", default="", help="Name of the machine (default: IMAGE-1, or the next that is free)")
    add("-c", "--cpus", metavar="CPUS", type=int, default=1, help="Processors (default: 1)")
    add("-m", "--memory", metavar="MEM", default="", help="Memory, such as 2Gi (default: 1Gi; tiny: 192Mi)")
    add("-d", "--disk", metavar="DISK", default="", help="Size of the disk, such as 20Gi (default: the image's if known, else 10Gi)")
    add("-k", "--key", metavar="FILE", action="append", default=[], help="Public SSH key for the guest (default: ~/.ssh/*.pub); repeatable")
    add("-p", "--publish", metavar="HOST:GUEST", action="append", default=[], help="Port of this host for one of the guest; repeatable")
    add("--user-data", metavar="FILE", help="cloud-init user data to use instead of a key and a user")
    words = "Directory of this host to mount in the guest, such as ./src:/src; with :ro it is read-only; repeatable"
    add("--mount", metavar="HOST:GUEST[:ro]", action="append", default=[], help=words)
    add("--count", metavar="N", type=int, default=1, help="Number of machines: NAME-1 to NAME-N (default: 1)")
    add("--rm", action="store_true", help="Attach to the console, and delete machine and disks at the end; ctrl+C ends it, too")
    arguments.add_choice(options, ("--dialect",), catalog.DIALECTS, "Dialect of the objects (default: kubevirt)", "kubevirt")
    add("--dry-run", action="store_true", help="Print the manifests, and make nothing; needs no server")
    arguments.add_choice(options, ("-o", "--output"), ("yaml", "json", "name"), "Output format of --dry-run (default: yaml)", "yaml")
    add("--timings", action="store_true", help="Print how long each phase took, and Paddock's own share")
    arguments.add_wait(options)
    arguments.add_quiet(options)
    arguments.add_server(options, namespace=("--namespace",))
    return options


def run(argv: Sequence[str], console: Console) -> int:
    options = parser()
    parsed = options.parse_args(argv)
    if parsed.count < 1 or parsed.cpus < 1:
        options.error("--count and --cpus must be at least 1")
    if parsed.count > 1 and (parsed.publish or parsed.rm):
        options.error("-p and --rm are for one machine, not for --count")
    if parsed.dry_run:
        return _dry_run(wishes.offline(parsed), parsed, console)
    return GOOD if asyncio.run(wishes.carry_out(parsed, console, attach)) else FINDINGS


def _dry_run(plan: RunPlan, parsed: argparse.Namespace, console: Console) -> int:
    for remark in plan.remarks:
        console.say(f"paddock: {remark}")
    print_objects(console, manifests(plan.machines), parsed.output)
    return GOOD
