"""Commands with verbs below them, such as `paddock image pull`. Each verb is a module that is loaded when it is called."""

from collections.abc import Mapping, Sequence
from importlib import import_module

from paddock.base.errors import UsageError
from paddock.cli.arguments import HelpRequested, Parser
from paddock.cli.console import Console

# Other words for the same verb.
_ALIASES = {"list": "ls", "remove": "rm", "delete": "rm"}


class VerbsParser(Parser):
    """The parser of a command that only has verbs: it makes the help, and knows no other option."""

    def __init__(self, command: str, text: str, verbs: Mapping[str, tuple[str, str]]) -> None:
        super().__init__(prog=f"paddock {command}", usage=f"paddock {command} COMMAND [OPTIONS]", description=text, add_help=False)
        self._verbs = verbs
        self.add_argument("-h", "--help", action="help", help="Show this help and exit")

    def format_help(self) -> str:
        """Return the help, which lists the verbs."""
        width = max(map(len, self._verbs)) + 1
        verbs = [f"  {name:<{width}} {text}" for name, (_, text) in self._verbs.items()]
        lines = [f"usage: {self.usage}", "", self.description, "", "commands:", *verbs, "", f"See `{self.prog} COMMAND --help`."]
        return "\n".join(map(str, lines)) + "\n"

    def help_text(self) -> str:
        """Return the same: verbs have the options."""
        return self.format_help()


def run(options: VerbsParser, verbs: Mapping[str, tuple[str, str]], argv: Sequence[str], console: Console) -> int:
    """Run one of the verbs. `verbs` maps each of them to its module and its summary."""
    if not argv or argv[0] in ("-h", "--help", "help"):
        raise HelpRequested(options.format_help())
    verb, rest = argv[0], argv[1:]
    if verb not in verbs:
        verb = _ALIASES.get(verb, verb)
    if verb not in verbs:
        command = options.prog.removeprefix("paddock ")
        raise UsageError(f'unknown command "{command} {verb}"', fix=f"`{options.prog}` has {', '.join(verbs)}")
    code: int = import_module(verbs[verb][0]).run(list(rest), console)
    return code
