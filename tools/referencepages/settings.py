"""docs/reference/settings.md: options of the programs that stay, environment variables, and Paddock's own names in objects."""

from collections.abc import Iterator, Sequence

from paddock.app.operator.options import SETTINGS
from paddock.base import ownnames, variables
from paddock.base.variables import Variable
from paddock.kubernetes.schema.generate import reference
from tools.commandpages import markdown, model
from tools.referencepages.tables import table

PROGRAMS = ("up", "apiserver", "operator", "provider serve")
_INTRODUCTION = f"""# Settings

{reference.HEADER}

Paddock has no configuration file. Options, environment variables and the objects on the server set everything up. An option counts
before its variable. [Commands](commands.md) has the options of all commands.
"""
_VARIABLES: Sequence[tuple[str, str, Sequence[Variable]]] = (
    ("Commands", "", variables.COMMANDS),
    ("Servers and `paddock doctor`", "", variables.SERVER),
    ("Programs in a Pod", "Kubernetes sets them.", variables.CLUSTER),
    (
        "`paddock provider serve`",
        "The controller of Providers sets them from the Provider; `spec.runtime.env` of the Provider sets others.",
        variables.PROVIDER,
    ),
    ("Single drivers", "", variables.DRIVERS),
)


def page() -> str:
    """Return the page."""
    return "\n".join([_INTRODUCTION, *_names(), *_environment(), *_programs()])


def _names() -> Iterator[str]:
    yield "## Names in objects\n"
    yield "Everything below `paddock.dev/` in an object. Users write those of the first kind; the others are Paddock's notes.\n"
    rows = [(f"`{each.name}`", each.place, each.author, each.text) for each in sorted(ownnames.ALL, key=_by_author)]
    yield from table(("name", "place", "written by", "meaning"), rows)


def _by_author(name: ownnames.OwnName) -> tuple[bool, str]:
    return name.author != "user", name.name


def _environment() -> Iterator[str]:
    yield "## Environment variables\n"
    for title, text, group in _VARIABLES:
        yield f"### {title}\n"
        if text:
            yield f"{text}\n"
        yield from table(("variable", "meaning"), [(f"`{each.name}`", each.text) for each in group])
    yield "### `paddock operator`\n"
    rows = [(f"`{each.variable}`", f"`{each.option}`", each.text) for each in SETTINGS if each.variable]
    yield from table(("variable", "option", "meaning"), rows)


def _programs() -> Iterator[str]:
    known = {each.entry.name: each for each in model.commands()}
    for name in PROGRAMS:
        yield f"## Options of paddock {name}\n"
        for group in known[name].groups:
            yield from markdown.options(group)
