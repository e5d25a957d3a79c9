"""`paddock provider ...`: the commands for providers. Each is a module of its own that is loaded when it is called."""

from paddock.cli import verbs
from paddock.cli.console import Console
from paddock.cli.verbs import VerbsParser

TEXT = "Serve and judge providers, and show the Provider objects of a server."
# command -> its module and what it does
COMMANDS = {
    "ls": ("paddock.app.commands.provider_list", "List the Provider objects of a server"),
    "describe": ("paddock.app.commands.provider_describe", "Show one Provider with its conditions and capabilities"),
    "serve": ("paddock.app.commands.provider_serve", "Serve a driver as a provider"),
    "conformance": ("paddock.app.commands.provider_conformance", "Judge a provider by what it does to machines"),
    "check": ("paddock.app.commands.provider_check", "Look at a hypervisor before you write a Provider for it"),
    "verify": ("paddock.app.commands.provider_verify", "Run the cases of a conformance spec on a server"),
}


def parser() -> VerbsParser:
    """Return the parser of the command."""
    return VerbsParser("provider", TEXT, COMMANDS)


def run(argv: list[str], console: Console) -> int:
    """Run one of the commands."""
    return verbs.run(parser(), COMMANDS, argv, console)
