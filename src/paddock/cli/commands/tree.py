"""`paddock tree`: shows a machine with what was made of it: instance, disks, networks, services."""

import argparse
from collections.abc import Iterator, Sequence

from paddock.base.lines import one_line
from paddock.cli import arguments, servers, terminal
from paddock.cli.console import Console
from paddock.cli.exits import GOOD
from paddock.cli.terminal import Screen
from paddock.fleet.documents import report
from paddock.fleet.machines import finding, trees
from paddock.fleet.machines.trees import TreeNode

_TEXT = """Show a machine with what belongs to it: the VirtualMachine that was made of it, its instance, its disks with their claims, its
networks, and the Services that lead to it."""


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("tree", _TEXT, "[OPTIONS] [KIND/]NAME")
    arguments.add_machine(options, arguments.MACHINE_TEXT)
    arguments.add_views(options, ("json", "yaml", "name"))
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    parsed = parser().parse_args(argv)
    servers.serve(_show(parsed, console))
    return GOOD


async def _show(parsed: argparse.Namespace, console: Console) -> None:
    async with servers.connected(parsed, console) as session:
        machine = await finding.find(session.client, parsed.name, session.namespace)
        root = trees.of(machine, *await trees.surroundings(session.client, machine.namespace))
    if parsed.output == "name":
        console.out("".join(f"{each}\n" for each in _names(root)))
    elif parsed.output:
        console.out(report.structured(trees.as_data(root), parsed.output))
    else:
        console.out("".join(f"{line}\n" for line in lines(root, terminal.current())))


def lines(root: TreeNode, screen: Screen) -> Iterator[str]:
    """Yield the lines of a tree."""
    yield _line(root, screen)
    yield from _below(root, "", screen)


def _below(node: TreeNode, indent: str, screen: Screen) -> Iterator[str]:
    for index, each in enumerate(node.children):
        last = index == len(node.children) - 1
        yield f"{indent}{'└─ ' if last else '├─ '}{_line(each, screen)}"
        yield from _below(each, f"{indent}{'   ' if last else '│  '}", screen)


def _line(node: TreeNode, screen: Screen) -> str:
    state = f" {screen.paint(one_line(node.state), node.colour)}" if node.state else ""
    return f"{node.kind} {one_line(node.name)}{state}"


def _names(node: TreeNode) -> Iterator[str]:
    yield f"{node.kind}/{node.name}"
    for each in node.children:
        yield from _names(each)
