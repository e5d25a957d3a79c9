"""`paddock crds`: the CustomResourceDefinitions of Paddock's kinds, made from the declarations."""

from collections.abc import Sequence

from paddock.cli import arguments
from paddock.cli.console import Console
from paddock.cli.exits import GOOD
from paddock.cli.output import print_objects
from paddock.dialects import catalog
from paddock.schema.generate import crd

_TEXT = "Print the CustomResourceDefinitions, ready for `kubectl apply`."


def run(given: Sequence[str], console: Console) -> int:
    """The command."""
    options = arguments.parser("crds", _TEXT)
    text = "only the kinds of one dialect; core: what clusters do not bring along"
    arguments.add_choice(options, ("--dialect",), ("core", *catalog.DIALECTS), text)
    arguments.add_format(options, "yaml")
    parsed = options.parse_args(given)
    kinds = [kind for kind in catalog.every() if parsed.dialect in (None, kind.dialect)]
    print_objects(console, list(crd.manifests(kinds)), parsed.output)
    return GOOD
