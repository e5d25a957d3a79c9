"""docs/reference/commands.md: every command with every option."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from paddock.kubernetes.schema.generate import reference
from tools.commandpages.model import CommandText, OptionGroup, OptionText, commands, paragraphs

_INTRODUCTION = """# Commands

Every command of `paddock` with its options and exit codes. `paddock COMMAND --help` prints the same, and so do the man pages
(`man paddock-COMMAND`). [The command line](../manifests/cli.md) describes what the commands have in common.
"""

# Options that more commands have are described once.
_MOST = 10


def page() -> str:
    """Return the page."""
    known = list(commands())
    shared = common(known)
    rows = [f"| [`{each.entry.name}`](#{_anchor(each)}) | {cell(each.entry.summary)} |" for each in known]
    parts = [
        _INTRODUCTION.replace("\n\n", f"\n\n{reference.HEADER}\n\n", 1),
        "| command | effect |\n| --- | --- |\n" + "\n".join(rows) + "\n",
        "## Common options\n",
        *options(OptionGroup("option", shared)),
    ]
    return "\n".join([*parts, *("\n".join(_section(each, shared)) for each in known)])


def common(known: Sequence[CommandText]) -> list[OptionText]:
    """Return the options that many commands have, in the same words."""
    counts = Counter(option for each in known for group in each.groups for option in group.options)
    return [option for option, count in counts.items() if count > _MOST and option.invocation.startswith("-")]


def _anchor(command: CommandText) -> str:
    return "-".join(["paddock", *command.entry.words])


def _section(command: CommandText, shared: Collection[OptionText]) -> Iterator[str]:
    yield f"## paddock {command.entry.name}\n"
    yield f"```text\n{command.usage}\n```\n"
    for is_table, paragraph in paragraphs(command.text):
        yield f"```text\n{paragraph}\n```\n" if is_table else f"{paragraph}\n"
    if command.verbs:
        yield "| command | effect |\n| --- | --- |"
        yield from (f"| [`{name}`](#{_anchor(command)}-{name}) | {cell(summary)} |" for name, summary in command.verbs)
        yield ""
    for group in command.groups:
        if own := [option for option in group.options if option not in shared]:
            yield from options(OptionGroup(group.title, own))
    if also := [option.invocation for group in command.groups for option in group.options if option in shared]:
        yield f"[Common options](#common-options): {', '.join(f'`{each}`' for each in also)}\n"
    if command.epilog:
        yield f"{command.epilog}\n"
    if command.exits:
        yield "| exit code | meaning |\n| ---: | --- |"
        yield from (f"| {code} | {cell(meaning)} |" for code, meaning in command.exits)
        yield ""


def options(group: OptionGroup) -> Iterator[str]:
    """Yield the table of a group of options."""
    yield f"| {group.title} | |\n| --- | --- |"
    yield from (f"| `{option.invocation.replace('|', chr(92) + '|')}` | {cell(option.text)} |" for option in group.options)
    yield ""


def cell(text: str) -> str:
    """Return a text for a cell of a table."""
    return text.replace("|", "\\|").replace("<", "\\<").replace("*", "\\*")
