"""`paddock why`: explains why an object of a server is not ready, with one cause and one fix."""

import argparse
from collections.abc import Sequence

from paddock.base.errors import Terminal
from paddock.cli import arguments, explanations, servers
from paddock.cli.console import Console
from paddock.cli.exits import FINDINGS, GOOD, UNJUDGED
from paddock.cli.names import candidates
from paddock.fleet.diagnosis.explain import Explanation, explain
from paddock.fleet.diagnosis.walk import walk
from paddock.fleet.documents import report
from paddock.fleet.servers.serverreader import ServerReader

_TEXT = """Explain why an object is not ready: one cause, the evidence, and one fix. KIND is a kind, its plural or a short name
(vm, dv, pvc, Machine ...), alone or with its group. Without KIND, the likeliest object of that name is chosen."""
_EXITS = {
    0: "nothing is wrong",
    1: "a cause was found, or the object is still on its way",
    2: "wrong usage, no such object, or no answer from the server",
    4: "no cause was found, and something could not be checked",
}


class ObjectNotFound(Terminal):
    """Nothing is called so."""


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("why", _TEXT, "[OPTIONS] [KIND/]NAME", _EXITS)
    what = options.add_argument("what", metavar="[KIND/]NAME", help="Object to explain, such as vm/web")
    arguments.complete_with(what, arguments.KnownNames.OBJECTS)
    arguments.add_server(options)
    arguments.add_format(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    parsed = parser().parse_args(argv)
    answer, now = servers.serve(_answer(parsed, console))
    if parsed.output == "text":
        console.out("".join(f"{line}\n" for line in explanations.lines(answer, now)))
    else:
        console.out(report.structured(explanations.as_data(answer), parsed.output))
    return {"good": GOOD, "unknown": UNJUDGED}.get(answer.state, FINDINGS)


async def _answer(parsed: argparse.Namespace, console: Console) -> tuple[Explanation, float]:
    async with servers.connected(parsed, console) as server:
        looking = ServerReader(server.client, server.clock)
        found = await looking.find(candidates(parsed.what, server.namespace))
        if not found:
            fix = "name its kind and its namespace: paddock why KIND/NAME -n NAMESPACE"
            raise ObjectNotFound(f'there is no {parsed.what} in namespace "{server.namespace}"', fix=fix)
        scene = await looking.gather(found[0])
    seen = {node.ref for node in walk(scene, found[0])}
    if others := [str(each) for each in found[1:] if each not in seen]:
        console.say(f"paddock: {found[0]} is meant; there is also {', '.join(others)}: name the kind to ask about it")
    return explain(scene, found[0]), scene.now
