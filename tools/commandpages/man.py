"""Man pages in man(7): paddock(1), and a page for each command."""

from collections.abc import Iterator, Mapping, Sequence

from paddock.app.main import GROUPS
from paddock.base import variables
from tools.commandpages.model import CommandText, OptionGroup, commands, paragraphs

# The day of the last change of their form: pages that differ from build to build could not be compared.
_DATE = "2026-11-23"
_ABOUT = """Paddock runs virtual machines that are declared as Kubernetes resources on one Linux host. It serves the Kubernetes API, keeps
the objects in one directory, and runs each machine as a QEMU process."""
_FILES = (
    ("/var/lib/paddock", "The directory of root's server: store, disks, kubeconfig, log"),
    ("~/.local/state/paddock", "The directory of another user's server"),
    ("~/.kube/config", "The kubeconfig of kubectl, into which `paddock ctx add` takes a server"),
)


def pages() -> Mapping[str, str]:
    """Return file name -> page."""
    known = list(commands())
    made = {f"{_page(each)}.1": "".join(f"{line}\n" for line in _command(each)) for each in known}
    return {**made, "paddock.1": "".join(f"{line}\n" for line in _program(known))}


def _page(command: CommandText) -> str:
    return "-".join(["paddock", *command.entry.words])


def _program(known: Sequence[CommandText]) -> Iterator[str]:
    yield from _head("paddock", "run virtual machines declared as Kubernetes resources")
    yield from (".SH SYNOPSIS", ".B paddock", "COMMAND [OPTIONS]", ".SH DESCRIPTION", *_text(_ABOUT), ".SH COMMANDS")
    by_name = {each.entry.name: each for each in known}
    for title, names in GROUPS.items():
        yield f".SS {escape(title.capitalize())}"
        for name in names:
            yield from (".TP", f".BR {escape(_page(by_name[name]))} (1)", escape(by_name[name].entry.summary))
    for title, rows in (("ENVIRONMENT", variables.COMMANDS), ("FILES", _FILES)):
        yield f".SH {title}"
        for name, text in rows:
            yield from (".TP", f".B {escape(name)}", escape(text))
    yield from (".SH SEE ALSO", ".BR kubectl (1),", ".BR qemu\\-system\\-x86_64 (1)")


def _command(command: CommandText) -> Iterator[str]:
    yield from _head(_page(command), command.entry.summary)
    yield from (".SH SYNOPSIS", f".B paddock {escape(command.entry.name)}", escape(command.usage.split(command.entry.name, 1)[1].strip()))
    yield ".SH DESCRIPTION"
    yield from _text(command.text)
    if command.verbs:
        yield ".SH COMMANDS"
        for name, summary in command.verbs:
            yield from (".TP", f".BR {escape(_page(command))}\\-{escape(name)} (1)", escape(summary))
    if command.groups:
        yield from _options(command.groups)
    if command.epilog:
        yield from (".SH NOTES", *_text(command.epilog))
    if command.exits:
        yield ".SH EXIT STATUS"
        for code, meaning in command.exits:
            yield from (".TP", f".B {code}", escape(meaning))
    above = "-".join(["paddock", *command.entry.words[:-1]])
    yield from (".SH SEE ALSO", f".BR {escape(above)} (1)")


def _head(name: str, summary: str) -> Iterator[str]:
    yield '.\\" Written by `make gen` from the parser of the command.'
    yield f'.TH {escape(name.upper())} 1 {_DATE} Paddock "Paddock Manual"'
    yield ".ad l"
    yield from (".SH NAME", f"{escape(name)} \\- {escape(summary[0].lower() + summary[1:])}")


def _options(groups: Sequence[OptionGroup]) -> Iterator[str]:
    yield ".SH OPTIONS"
    for group in groups:
        if len(groups) > 1:
            yield f".SS {escape(group.title.capitalize())}"
        for option in group.options:
            yield from (".TP", f".B {escape(option.invocation)}", escape(option.text) or "\\&")


def _text(text: str) -> Iterator[str]:
    for number, (is_table, paragraph) in enumerate(paragraphs(text)):
        if number:
            yield ".PP"
        if is_table:
            yield from (".nf", *(escape(line) for line in paragraph.splitlines()), ".fi")
        else:
            yield escape(paragraph)


def escape(text: str) -> str:
    """Return a text as roff takes it: hyphens that one can copy, and no line that is a request."""
    found = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\`").replace("~", "\\(ti").replace("^", "\\(ha")
    return f"\\&{found}" if found.startswith((".", "'")) else found
