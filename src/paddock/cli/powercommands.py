"""The commands that start, stop and pause machines differ in their words; what they share is here."""

import argparse
from collections.abc import Sequence

from paddock.cli import arguments, servers, several
from paddock.cli.arguments import Parser
from paddock.cli.console import Console
from paddock.fleet.machines.running import VERBS, MachineRunner, RunOptions


def parser(verb: str, text: str, *, waits: bool = True) -> Parser:
    """Return a parser with the options that these commands share."""
    options = arguments.parser(verb, text, "[OPTIONS] [KIND/]NAME...", several.EXITS)
    several.add_names(options)
    if waits:
        arguments.add_wait(options)
    arguments.add_dry_run(options)
    arguments.add_quiet(options)
    arguments.add_server(options)
    return options


def carry_out(verb: str, options: Parser, given: Sequence[str], console: Console) -> int:
    """Do what the verb says for all machines that are named."""
    parsed = options.parse_args(given)
    return servers.serve(_work(verb, parsed, console))


async def _work(verb: str, parsed: argparse.Namespace, console: Console) -> int:
    options = RunOptions(
        force=getattr(parsed, "force", False),
        paused=getattr(parsed, "paused", False),
        soft=getattr(parsed, "soft", False),
        discard=getattr(parsed, "discard", False),
        seconds=parsed.timeout if getattr(parsed, "wait", False) else 0.0,
        dry_run=parsed.dry_run,
    )

    def tell(line: str) -> None:
        if not parsed.quiet:
            console.say(line)

    async with servers.connected(parsed, console) as session:
        runner = MachineRunner(session.client, session.clock, options, tell)
        return await several.each(session, parsed.names, console, lambda machine: VERBS[verb](runner, machine))
