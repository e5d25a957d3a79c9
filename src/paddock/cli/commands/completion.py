"""`paddock completion`: prints the completion script of a shell."""

from collections.abc import Sequence
from importlib.resources import files

from paddock.cli import arguments
from paddock.cli.console import Console
from paddock.cli.exits import GOOD

# shell -> its file, called as the shell looks for it
_FILES = {"bash": "paddock", "zsh": "_paddock", "fish": "paddock.fish"}
SHELLS = tuple(_FILES)
_TEXT = """Print the completion script of a shell. It completes commands, options, their values, and names of machines, namespaces,
contexts and kinds.

  bash  source <(paddock completion bash)
  zsh   source <(paddock completion zsh)
  fish  paddock completion fish | source

A line in the shell's start-up file makes it permanent; Debian's package brings all three."""
_EXITS = {0: "success", 2: "wrong usage"}


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("completion", _TEXT, "bash|zsh|fish", _EXITS)
    shell = options.add_argument("shell", metavar="bash|zsh|fish", type=arguments.one_of(SHELLS), help="Shell to complete in")
    arguments.complete_with(shell, SHELLS)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    console.out(script(parser().parse_args(argv).shell))
    return GOOD


def script(shell: str) -> str:
    """Return the completion script of a shell."""
    return (files("paddock.cli.completion") / "shells" / shell / _FILES[shell]).read_text(encoding="utf-8")
