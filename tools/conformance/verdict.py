"""Decides for each item whether it is met. Met means: marked tests exist, and every one of them ran and passed.

An item that speaks of disks, memory, processors, networks or guests can be met by tests on a fake engine; the verdict says so.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from tools.conformance.checklist import Item
from tools.conformance.reasons import Reason
from tools.conformance.results import ItemId, TestResult

NO_TEST = "no test yet"
# Tests below these folders run real QEMU processes.
REAL_ENGINE = ("tests/host/", "tests/reference/virtctl/")


@dataclass(frozen=True, slots=True)
class Verdict:
    """``tests`` are the proving test functions when ``met``; else ``reason`` says why not.

    ``needs_engine``: the item speaks of what only a real engine shows.
    """

    item: Item
    met: bool
    tests: tuple[str, ...] = ()
    reason: str = ""
    needs_engine: bool = False

    @property
    def on_engine(self) -> bool:
        """Return True if one of the proving tests runs on the real engine."""
        return any(test.startswith(REAL_ENGINE) for test in self.tests)


def decide(
    checklists: Mapping[str, Sequence[Item]],
    results: Iterable[TestResult],
    reasons: Mapping[ItemId, Reason],
    engine: Set[ItemId] = frozenset(),
) -> dict[str, tuple[Verdict, ...]]:
    marked: dict[ItemId, list[TestResult]] = {}
    for result in results:
        for item_id in result.items:
            marked.setdefault(item_id, []).append(result)
    return {
        spec: tuple(
            replace(
                _verdict(item, marked.get((spec, item.number), ()), reasons.get((spec, item.number))),
                needs_engine=(spec, item.number) in engine,
            )
            for item in items
        )
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
