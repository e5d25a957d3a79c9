"""Decides for each item whether it is met. Met means: marked tests exist, and every one of them ran and passed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tools.conformance.checklist import Item
from tools.conformance.reasons import Reason
from tools.conformance.results import ItemId, TestResult

NO_TEST = "no test yet"


@dataclass(frozen=True, slots=True)
class Verdict:
    """``tests`` are the proving test functions when ``met``; else ``reason`` says why not."""

    item: Item
    met: bool
    tests: tuple[str, ...] = ()
    reason: str = ""


def decide(
    checklists: Mapping[str, Sequence[Item]], results: Iterable[TestResult], reasons: Mapping[ItemId, Reason]
) -> dict[str, tuple[Verdict, ...]]:
    marked: dict[ItemId, list[TestResult]] = {}
    for result in results:
        for item_id in result.items:
            marked.setdefault(item_id, []).append(result)
    return {
        spec: tuple(_verdict(item, marked.get((spec, item.number), ()), reasons.get((spec, item.number))) for item in items)
        for spec, items in checklists.items()
    }


def met(verdicts: Mapping[str, Sequence[Verdict]]) -> frozenset[ItemId]:
    return frozenset((spec, verdict.item.number) for spec, found in verdicts.items() for verdict in found if verdict.met)


def _verdict(item: Item, results: Sequence[TestResult], reason: Reason | None) -> Verdict:
    broken = sorted({(result.outcome, _function(result.node)) for result in results if result.outcome != "passed"})
    if results and not broken:
        return Verdict(item, met=True, tests=tuple(sorted({_function(result.node) for result in results})))
    why = "; ".join(f"`{function}` {outcome}" for outcome, function in broken)
    return Verdict(item, met=False, reason="; ".join(part for part in (reason.text if reason else "", why) if part) or NO_TEST)


def _function(node: str) -> str:
    """The test function's id: with its cases, the page would change whenever a table gets a row."""
    return node.partition("[")[0]
