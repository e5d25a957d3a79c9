"""`paddock dashboards`: prints dashboards for Grafana and alert rules for Prometheus, or writes them to files."""

from collections.abc import Sequence
from pathlib import Path

from paddock.base.errors import Terminal
from paddock.cli import arguments
from paddock.cli.console import Console
from paddock.cli.exits import GOOD
from paddock.cli.monitoring import grafana

# The parser knows the names without reading the declarations.
NAMES = ("machines", "server", "operator", "alerts")
_TEXT = "Print a dashboard for Grafana, or alert rules for Prometheus. Without a name, list what there is."
_EXITS = {0: "success", 2: "wrong usage, or a file that cannot be written"}


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("dashboards", _TEXT, exits=_EXITS)
    named = options.add_argument("name", nargs="?", type=arguments.one_of(NAMES), metavar="NAME", help=f"One of {', '.join(NAMES)}")
    arguments.complete_with(named, NAMES)
    options.add_argument("--to", metavar="DIR", help="Write files into this directory: all, or the one that is named")
    return options


def run(argv: Sequence[str], console: Console) -> int:
    parsed = parser().parse_args(argv)
    files = {file: text for file, text in grafana.files().items() if parsed.name in (None, file.partition(".")[0])}
    if parsed.to is not None:
        _write(Path(parsed.to), files, console)
    elif parsed.name is None:
        console.out("".join(f"{name:<10} {each.title}: {each.text}\n" for name, each in grafana.dashboards().items()))
        console.out(f"{grafana.ALERTS:<10} Alert rules for Prometheus.\n")
    else:
        console.out("".join(files.values()))
    return GOOD


def _write(folder: Path, files: dict[str, str], console: Console) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            target = folder / f"paddock-{name}"
            target.write_text(text, encoding="utf-8")
            console.out(f"{target}\n")
    except OSError as error:
        why, fix = error.strerror or str(error), "name a directory that you may write to: --to DIR"
        raise Terminal(f"cannot write to {folder}", why=why, fix=fix) from error
