"""Prints the verdicts as Markdown. The same verdicts give the same text, byte for byte."""

from collections.abc import Iterator, Mapping, Sequence

from tools.conformance.verdict import Verdict

_TEXT_LIMIT = 160
_NOTE = (
    "Written by `make conformance` from the results of `make test` and those that the last `make test-reference` and",
    "`make test-host RECORD=1` left in `tests/reference/results.json` and `tests/host/results.json`; do not edit. An item is met when",
    "tests are marked with it and every one of them ran and passed. The reasons for the others are in `docs/spec/unmet.toml`.",
    "",
    "`docs/spec/engine.toml` names the items that speak of disks, memory, processors, networks or guests. The last two columns count",
    'those of them that are met, and those that a test with real QEMU proves. The rest say "shown on a fake engine".',
)
_FAKE = "shown on a fake engine: "


def render(verdicts: Mapping[str, Sequence[Verdict]]) -> str:
    return "\n".join(_lines(verdicts)) + "\n"


def shorten(text: str, limit: int = _TEXT_LIMIT) -> str:
    """Cuts at a word, and closes code that the cut left open."""
    if len(text) <= limit:
        return text
    cut = text[:limit].rsplit(" ", 1)[0].rstrip(" ,;:.(")
    return cut + ("`" if cut.count("`") % 2 else "") + " ..."


def _lines(verdicts: Mapping[str, Sequence[Verdict]]) -> Iterator[str]:
    yield from ("# Conformance", "")
    yield from ("| spec | met | total | of guests, met | on the real engine |", "| --- | ---: | ---: | ---: | ---: |")
    for spec, found in verdicts.items():
        guests = [verdict for verdict in found if verdict.met and verdict.needs_engine]
        counts = (sum(verdict.met for verdict in found), len(found), len(guests), sum(verdict.on_engine for verdict in guests))
        yield f"| {spec} | " + " | ".join(map(str, counts)) + " |"
    yield from ("", *_NOTE)
    for spec, found in verdicts.items():
        yield from ("", f"## {spec}", "", f"The items in full are at the end of [{spec}.md](../spec/{spec}.md).", "")
        yield from ("| item | text | met by, or why not |", "| ---: | --- | --- |")
        for verdict in found:
            yield f"| {verdict.item.number} | {_cell(shorten(verdict.item.text))} | {_cell(_proof(verdict))} |"


def _proof(verdict: Verdict) -> str:
    if not verdict.met:
        return f"not met: {verdict.reason}"
    tests = ", ".join(f"`{test}`" for test in verdict.tests)
    return tests if verdict.on_engine or not verdict.needs_engine else _FAKE + tests


def _cell(text: str) -> str:
    """A bar would end the cell, and a bare tag such as <name> would vanish from the page."""
    parts = text.replace("|", "\\|").split("`")
    return "`".join(part if number % 2 else part.replace("<", "&lt;") for number, part in enumerate(parts))
