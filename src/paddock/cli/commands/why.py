"""`paddock why`: explains why an object of a server is not ready, with one cause and one fix."""

import argparse
from collections.abc import Sequence

from paddock.base.errors import Terminal
from paddock.cli import arguments, explanations, report
from paddock.cli.console import Console
from paddock.cli.diagnosis.explain import Explanation
from paddock.cli.exits import FINDINGS, GOOD, UNJUDGED

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


def run(given: Sequence[str], console: Console) -> int:
    """Run the command."""
    options = arguments.parser("why", _TEXT, "[OPTIONS] [KIND/]NAME", _EXITS)
    options.add_argument("what", metavar="[KIND/]NAME", help="Object to explain, such as vm/web")
    arguments.add_server(options)
    arguments.add_format(options)
    parsed = options.parse_args(given)
    # Everything that talks to servers is heavy, and no other command here does.
    import asyncio  # noqa: PLC0415

    answer, now = asyncio.run(_answer(parsed, console))
    if parsed.output == "text":
        console.out("".join(f"{line}\n" for line in explanations.lines(answer, now)))
    else:
        console.out(report.structured(explanations.as_data(answer), parsed.output))
    return {"good": GOOD, "unknown": UNJUDGED}.get(answer.state, FINDINGS)


async def _answer(parsed: argparse.Namespace, console: Console) -> tuple[Explanation, float]:
    import os  # noqa: PLC0415 - as above

    from paddock.base.clock import SystemClock  # noqa: PLC0415
    from paddock.base.directories import running_kubeconfigs  # noqa: PLC0415
    from paddock.cli.diagnosis.explain import explain  # noqa: PLC0415
    from paddock.cli.diagnosis.walk import walk  # noqa: PLC0415
    from paddock.cli.names import candidates  # noqa: PLC0415
    from paddock.cli.serverreader import ServerReader  # noqa: PLC0415
    from paddock.client import kubeconfig  # noqa: PLC0415
    from paddock.client.client import Client, ClientSettings  # noqa: PLC0415
    from paddock.client.errors import BadAccess  # noqa: PLC0415
    from paddock.client.http.https import Https  # noqa: PLC0415

    clock = SystemClock()
    try:
        access = kubeconfig.find(
            os.environ, clock, explicit=parsed.kubeconfig, context=parsed.context, local=running_kubeconfigs(os.environ)
        )
    except BadAccess as error:
        error.fix = error.fix or "name one with --kubeconfig; `paddock up` writes one into its directory"
        raise
    namespace = parsed.namespace or access.namespace
    # The server's warnings are about the kinds that are asked for here; nobody wrote them.
    async with Client(Https(access), ClientSettings(warnings=False)) as client:
        looking = ServerReader(client, clock)
        found = await looking.find(candidates(parsed.what, namespace))
        if not found:
            fix = "name its kind and its namespace: paddock why KIND/NAME -n NAMESPACE"
            raise ObjectNotFound(f'there is no {parsed.what} in namespace "{namespace}"', fix=fix)
        scene = await looking.gather(found[0])
    seen = {node.ref for node in walk(scene, found[0])}
    if others := [str(each) for each in found[1:] if each not in seen]:
        console.say(f"paddock: {found[0]} is meant; there is also {', '.join(others)}: name the kind to ask about it")
    return explain(scene, found[0]), scene.now
