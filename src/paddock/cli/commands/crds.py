"""`paddock crds`: prints the CustomResourceDefinitions, which come from the declarations of the kinds."""

from collections.abc import Sequence

from paddock.cli import arguments
from paddock.cli.console import Console
from paddock.cli.exits import GOOD
from paddock.cli.output import print_objects
from paddock.kubernetes import catalog
from paddock.kubernetes.schema.generate import crd

_TEXT = "Print the CustomResourceDefinitions of all kinds, ready for `kubectl apply`."
_EXITS = {0: "success", 2: "wrong usage"}


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("crds", _TEXT, exits=_EXITS)
    text = "Print only the kinds of this dialect; core: kinds that a plain cluster lacks"
    arguments.add_choice(options, ("--dialect",), ("core", *catalog.DIALECTS), text)
    arguments.add_format(options, "yaml")
    return options


def run(argv: Sequence[str], console: Console) -> int:
    parsed = parser().parse_args(argv)
    kinds = [kind for kind in catalog.every() if parsed.dialect in (None, kind.dialect)]
    print_objects(console, list(crd.manifests(kinds)), parsed.output)
    return GOOD
