"""How much of the page the code that there is has shown: real programs and guests run seldom, so their results may be of other code.

It stands at the end of the page, as of the moment when the page was written. A check of the page leaves it out: otherwise almost every
commit would have to write the page again.
"""

from collections.abc import Iterator, Mapping, Sequence

from tools.conformance.results import ItemId, TestResult
from tools.conformance.verdict import REAL_ENGINE, Verdict

_HEADING = "\n## How current the proofs are\n"
_NOTE = """
Real programs and guests do not run for each commit. A result of theirs is current if the code that its test uses is still the same
([the gate](../contribute/gate.md#the-code-that-a-test-uses)). Each row counts the items that only current results prove and names the
others, whose code has changed since. It holds for the code with which this page was written.
"""


def without(text: str) -> str:
    """Return the page without this part."""
    return text.partition(_HEADING)[0]


def render(verdicts: Mapping[str, Sequence[Verdict]], seldom: Sequence[TestResult], digests: Mapping[str, str]) -> str:
    """Return this part; `seldom` are the results of real programs and guests, `digests` those of the test modules' code now."""
    return "\n".join((_HEADING + _NOTE, *_rows(verdicts, seldom, digests))) + "\n"


def _rows(verdicts: Mapping[str, Sequence[Verdict]], seldom: Sequence[TestResult], digests: Mapping[str, str]) -> Iterator[str]:
    older: dict[ItemId, str] = {}
    shown: set[ItemId] = set()
    for result in seldom:
        if result.code != digests.get(result.file):
            older |= {item: min(older.get(item, result.date), result.date) for item in result.items}
        elif result.outcome == "passed" and result.node.startswith(REAL_ENGINE):
            shown |= set(result.items)
    yield "| spec | met on this code | on the real engine, on this code | met on other code | the oldest result |"
    yield "| --- | ---: | ---: | --- | --- |"
    for spec, found in verdicts.items():
        met = [(spec, verdict.item.number) for verdict in found if verdict.met]
        engine = sum(verdict.met and verdict.needs_engine and (spec, verdict.item.number) in shown for verdict in found)
        old = [item for item in met if item in older]
        oldest = min((older[item] for item in old), default="-") or "not dated"
        named = ", ".join(str(number) for _, number in old) or "-"
        yield f"| {spec} | {len(met) - len(old)} | {engine} | {named} | {oldest} |"
