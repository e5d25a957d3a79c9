"""Prints what each driver can do, as the runs of the providers' conformance suite have shown it. The same runs give the same text.

A driver can do what it says it can, and what is proven is that the suite's cases for it have passed. No cell is written by hand.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from paddock.contract import features
from paddock.contract.conformance.case import ConformanceCase
from paddock.contract.conformance.cases.catalog import CASES
from paddock.contract.messages import GetCapabilitiesResponse
from tools.conformance.results import Outcome, ProviderRun, TestResult

_NOTE = (
    "Written by `make conformance` from the runs of the providers' conformance suite in `make test`, and in the last `make test-reference`",
    "and `make test-host SLOW=1`; do not edit. [Writing a driver](../contribute/writing-a-driver.md) describes the suite. The",
    "[guide](../providers/README.md) has a page for each driver.",
)
_SIGNS = (
    "| sign | meaning |",
    "| --- | --- |",
    "| yes | the driver says that it can, and the suite's cases for it have passed |",
    "| says so | the driver says that it can; the suite has no case for it |",
    "| unproven | the driver says that it can, and none of the suite's cases for it has run here |",
    "| no | the driver says that it cannot; it refuses what needs it, or names it as a limitation |",
)
# What every provider has to have, so no capability stands for it.
_BASICS = "the contract's basics"


def render(results: Iterable[TestResult]) -> str:
    """Return the page."""
    runs = _joined(results)
    return "\n".join(_lines(runs)) + "\n"


def _joined(results: Iterable[TestResult]) -> Sequence[ProviderRun]:
    """One run for each driver and what it ran against: a test may play one case. Runs of failed tests prove nothing."""
    cases: dict[tuple[str, str], dict[str, Outcome]] = defaultdict(dict)
    capabilities: dict[tuple[str, str], set[str]] = defaultdict(set)
    for result in results:
        for run in result.runs if result.outcome == "passed" else ():
            key = (run.driver, run.against)
            capabilities[key].update(run.capabilities)
            for name, outcome in run.cases:
                if cases[key].get(name) != "passed":
                    cases[key][name] = outcome
    known = {each.name for each in CASES}
    return [
        ProviderRun(driver, against, tuple(sorted(capabilities[driver, against])), _outcomes(cases[driver, against], known))
        for driver, against in sorted(capabilities)
    ]


def _outcomes(cases: Mapping[str, Outcome], known: set[str]) -> tuple[tuple[str, Outcome], ...]:
    return tuple(sorted((name, outcome) for name, outcome in cases.items() if name in known))


# The one program of somebody else's that the tests change.
_ALTERED = (
    "The tests alter VMware's simulator of vCenter (govmomi 0.52, `tests/reference/programs/vsphere`) in these points:",
    "",
    "- Disks have as many bytes as their size says, all zero at first; the simulator's are empty files.",
    "- A revert brings back processors, memory and power; the simulator's moves a mark.",
    "- Without a session, nothing but the service content is answered; the user and the password are those of the test.",
    "- On command it delays methods and tasks, lets calls fail, ends sessions, forgets ended tasks, and counts calls.",
    "- In some runs clones have their specification's instance UUID and settings from their first moment; the simulator's lack them.",
    "",
    "Against the simulator as it is, all cases pass but those six that need the first two: `snapshot-memory`, `snapshot-revert`, `export`,",
    "`import`, `import-checksum` and `transfer-delete`; `exec` and `exec-off` are left out. `tests/reference/vsphere/test_conformance.py`",
    "runs both.",
)


def _lines(runs: Sequence[ProviderRun]) -> Iterator[str]:
    yield from ("# Drivers and what they can do", "", *_NOTE, "", "## Runs", "")
    yield from ("| driver | against | cases passed | left out |", "| --- | --- | ---: | ---: |")
    for run in runs:
        passed = sum(outcome == "passed" for _, outcome in run.cases)
        yield f"| {run.driver} | {run.against} | {passed} | {len(CASES) - passed} |"
    yield from (
        "",
        "A case is left out when the driver does not have what it judges, or when it has no part in that run.",
        "",
        *_ALTERED,
        "",
    )
    yield from ("## Capabilities", "", *_SIGNS, "")
    heads = [f"{run.driver}, {run.against}" for run in runs]
    yield f"| capability | {' | '.join(heads)} |"
    yield "| --- |" + " --- |" * len(runs)
    for name in _capabilities():
        yield f"| {name} | {' | '.join(_cell(run, name) for run in runs)} |"
    yield from ("", "## Cases", "", f"| case | demand | {' | '.join(heads)} |", "| --- | --- |" + " --- |" * len(runs))
    for case in CASES:
        outcomes = (dict(run.cases).get(case.name, "-") for run in runs)
        yield f"| {case.name} | {case.text} | {' | '.join(outcomes)} |"


def _capabilities() -> Sequence[str]:
    """The names of capabilities that are on or off, then those of features."""
    annotated = GetCapabilitiesResponse.__annotations__
    default = GetCapabilitiesResponse()
    switches = [name for name in annotated if getattr(default, name) is False]
    return [_BASICS, *(_shown(name) for name in switches), *features.CALLS, *features.MEMBERS]


def _shown(name: str) -> str:
    return name.removeprefix("supports_").replace("_", " ")


def _cell(run: ProviderRun, capability: str) -> str:
    judging = [case for case in CASES if capability in _demands(case)]
    outcomes = dict(run.cases)
    passed = [case for case in judging if outcomes.get(case.name) == "passed"]
    if capability == _BASICS:
        return "yes" if passed and not any(outcomes.get(case.name) == "failed" for case in judging) else "unproven"
    claimed = any(capability == _shown(each) for each in run.capabilities) or features.has(run.capabilities, capability)
    if not claimed:
        return "no"
    if not judging:
        return "says so"
    return "yes" if passed else "unproven"


def _demands(case: ConformanceCase) -> tuple[str, ...]:
    return (*(_shown(name) for name in case.needs), *case.features) or (_BASICS,)
