"""`paddock provider ...`: the commands for providers. Each is a module of its own that is loaded when it is called."""

from importlib import import_module

from paddock.base.errors import Terminal
from paddock.cli.arguments import HelpRequested
from paddock.cli.console import Console

TEXT = "Serve, judge and load providers, and show the Provider objects of a server."
# command -> its module and what it does
COMMANDS = {
    "ls": ("paddock.app.commands.provider_list", "List the Provider objects of a server"),
    "describe": ("paddock.app.commands.provider_describe", "Show one Provider with its conditions and capabilities"),
    "serve": ("paddock.app.commands.provider_serve", "Serve a driver as a provider"),
    "conformance": ("paddock.app.commands.provider_conformance", "Judge a provider by what it does to machines"),
    "bench": ("paddock.app.commands.provider_bench", "Measure a provider under load"),
}


def run(given: list[str], console: Console) -> int:
    """Run one of the commands."""
    if not given or given[0] in ("-h", "--help", "help"):
        raise HelpRequested(_usage())
    given = ["ls", *given[1:]] if given[0] == "list" else given
    if given[0] not in COMMANDS:
        raise Terminal(f'unknown command "provider {given[0]}"', fix=f"`paddock provider` has {', '.join(COMMANDS)}")
    code: int = import_module(COMMANDS[given[0]][0]).run(given[1:], console)
    return code


def _usage() -> str:
    commands = [f"  {name:<12} {text}" for name, (_, text) in COMMANDS.items()]
    lines = [
        "usage: paddock provider COMMAND [OPTIONS]",
        "",
        TEXT,
        "",
        "commands:",
        *commands,
        "",
        "See `paddock provider COMMAND --help`.",
    ]
    return "\n".join(lines) + "\n"
