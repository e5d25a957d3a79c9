"""`paddock renew`: moves running machines to the QEMU that is installed now, without a reboot of their guests."""

import argparse
import asyncio
import json
from collections.abc import Sequence

from paddock.base.errors import PaddockError
from paddock.base.jsondata import Data
from paddock.base.names import check_name
from paddock.cli import arguments, serveraccess
from paddock.cli.console import Console
from paddock.kubernetes.client.client import Client, ClientSettings
from paddock.kubernetes.client.http.https import Https
from paddock.kubernetes.client.options import Selection
from paddock.kubernetes.client.target import Key, Target, declared
from paddock.kubevirt.kinds import instance

TEXT = """Move running machines to the QEMU that is installed now, without rebooting their guests. Machines move one after
another, because each needs its memory twice meanwhile."""
_EXITS = {0: "all machines moved", 1: "a machine did not move", 2: "wrong usage, or no answer from the server"}
_INSTANCES: Target[Data] = declared(instance.KINDS[0], dict)
_PATH = "/apis/subresources.kubevirt.io/v1/namespaces/{}/virtualmachineinstances/{}/renew"
# The memory of a large machine takes a while.
_SECONDS = 3600.0


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("renew", TEXT, "[OPTIONS] (NAME... | --outdated)", _EXITS)
    names = options.add_argument("names", metavar="NAME", nargs="*", help="Machines to move")
    arguments.complete_with(names, arguments.KnownNames.MACHINES)
    options.add_argument("--outdated", action="store_true", help="Move all machines whose QEMU was replaced since they started")
    arguments.add_server(options)
    options.add_argument("-A", "--all-namespaces", action="store_true", help="With --outdated: in every namespace")
    return options


def run(argv: list[str], console: Console) -> int:
    """Move the machines one after another, because each needs its memory twice meanwhile."""
    options = parser()
    parsed = options.parse_args(argv)
    if bool(parsed.names) == parsed.outdated or (parsed.all_namespaces and not parsed.outdated):
        options.error("name machines, or ask for --outdated (with -A for every namespace)")
    for word in (*parsed.names, *filter(None, [parsed.namespace])):
        check_name(word)
    return asyncio.run(_renew(parsed, console))


async def _renew(parsed: argparse.Namespace, console: Console) -> int:
    access = serveraccess.find(parsed, console)
    namespace = "" if parsed.all_namespaces else parsed.namespace or access.namespace
    async with Client(Https(access), ClientSettings(seconds=_SECONDS)) as client:
        keys = await _outdated(client, namespace) if parsed.outdated else [Key(namespace, name) for name in parsed.names]
        if not keys:
            console.say("paddock: no machine runs an outdated QEMU")
        return await renew(client, keys, console)


async def renew(client: Client, keys: Sequence[Key], console: Console) -> int:
    """These; a line for each."""
    failed = 0
    for key in keys:
        try:
            answer = json.loads(await client.request("PUT", _PATH.format(key.namespace, key.name)))
        except PaddockError as error:
            failed += 1
            console.say(f"paddock: {key.namespace}/{key.name}: {error}")
        else:
            pause = float(answer["pauseSeconds"]) * 1000
            console.out(f"{key.namespace}/{key.name}: QEMU {answer['before']} -> {answer['after']}, stood still for {pause:.0f} ms\n")
    return 1 if failed else 0


async def _outdated(client: Client, namespace: str) -> list[Key]:
    listed = await client.list(_INSTANCES, Selection(namespace=namespace, labels=instance.OUTDATED))
    return [Key(each["metadata"]["namespace"], each["metadata"]["name"]) for each in listed.items]
