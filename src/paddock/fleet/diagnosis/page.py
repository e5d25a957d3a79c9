"""The page of all causes (docs/reference/why.md), printed from the rules."""

from collections.abc import Iterator

from paddock.fleet.diagnosis.table import GROUPS, every

_MOODS = {
    "fails": "",
    "waits": " *It continues by itself.*",
    "notice": " *The object works, but not as it should.*",
    "hint": " *Good to know.*",
}


def page(header: str) -> str:
    return "\n".join([header, *_lines()]) + "\n"


def _lines() -> Iterator[str]:
    rules = every()
    yield "# Causes that `paddock why` names"
    yield ""
    asking = "../use/troubleshooting.md#why-does-it-not-run"
    yield f"{len(rules)} causes. The id is in `-o json` (`rule`), and stays the same. [How to ask]({asking})."
    for title, ids in GROUPS.items():
        yield ""
        yield f"## {title}"
        yield ""
        yield "| cause | what it means | what to do |"
        yield "| --- | --- | --- |"
        for name in ids:
            rule = rules[name]
            yield f"| `{name}` | {_cell(rule.title)}{_MOODS[rule.mood]} | {_cell(rule.fix)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
