"""docs/evidence/kubevirt-tests.md: what became of each of KubeVirt's functional tests that ran against `paddock up`, and why.

The results are those that `make test-kubevirt` recorded, the reasons those that the run holds them against (`tests/reference/functional`).
"""

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from paddock.kubernetes.schema.generate import reference
from tests.reference.functional import results, suite
from tests.reference.functional.results import Results, Verdict
from tests.reference.functional.suite import Ending
from tests.reference.recipes import FUNCTIONAL
from tools.upstream import Case, Inventory, plain

_WIDTH = 140
_ABOUT = """# KubeVirt's functional tests

{header}

KubeVirt's functional tests ({version}) run against `paddock up` with real guests, as KubeVirt builds them from its own tree. Of {total}
specs {ran} ran. **{passed} passed**, and {skipped} skipped themselves. {differs} failed because Paddock behaves differently, {nature}
because they ask for Pods, nodes or an installation that Paddock does not have, and {environment} by the guest, the harness or the host of
the run. Of what can be decided here, which is all that ran but for the {undecided} of those two kinds, {passed} of {decidable} specs pass:
{percent} %. Of all that ran, {passed} of {ran} pass: {of_all} %. {left} specs of the groups have not run yet.
Each spec counts with its newest run, so one that failed counts as failed until it runs again, also where Paddock has changed since.
{untried} of the failed ones fail with an earlier spec of their container, behind which the suite tries no other.

Run a group with `make test-kubevirt GROUP=access`; without `GROUP` it prints the groups. `ONLY=regex` takes specs by their names, and
`FAILED=1` those that failed last, `NEW=1` those that have not run. It needs Go and QEMU. The programs are built from the Go module
proxy. Some lines of the tests' harness are altered, each with its reason in `tests/reference/programs/kubevirt-tests/alterations.toml`,
and no assertion is among them.
The guest is Paddock's tiny guest with the logins of Alpine Linux, CirrOS and Fedora.
"""
_TITLES = {"differs": "What differs", "nature": "What asks for more than one host", "environment": "What the run could not show"}


def page() -> str:
    """Return the page."""
    return render(results.read(), results.verdicts())


def render(recorded: Results, known: Sequence[Verdict]) -> str:
    """Return the page of some results."""
    reasons = _reasons(recorded.endings.values(), known)
    counts = Counter(_column(ending, known) for ending in recorded.endings.values())
    lines = [_about(recorded, counts), *_groups(recorded, known)]
    for cause, title in _TITLES.items():
        lines += [f"## {title}", ""]
        for why, endings in reasons.get(cause, {}).items():
            lines += [*textwrap.wrap(f"{why} ({len(endings)}):", _WIDTH, break_on_hyphens=False), "", *map(_line, endings), ""]
    return "\n".join([*lines, *_not_run(recorded)]).rstrip() + "\n"


def softened(recorded: Results, known: Sequence[Verdict], inventory: Inventory) -> list[str]:
    """Return the cases that tests of Paddock claim to show, although the original fails because Paddock differs."""
    differing = [ending for ending in recorded.endings.values() if _column(ending, known) == "differs"]
    shown = [case for case in inventory.cases if case.verdict in ("replica", "shown")]
    return [f"{case.file}: {case.name}" for case in shown if any(_is_original(ending, case) for ending in differing)]


def _is_original(ending: Ending, case: Case) -> bool:
    words = re.escape(case.name.replace(" / ", " ").replace('\\"', '"'))
    # A word in brackets stands for what a variable of the test says.
    return f"tests/{ending.file}" == case.file and re.search(re.sub(r"<\w+>", ".*", words) + "$", ending.name) is not None


def _about(recorded: Results, counts: Mapping[str, int]) -> str:
    decidable = counts["passed"] + counts["differs"]
    ran = sum(number for column, number in counts.items() if column != "skipped")
    not_taken = sum(recorded.left_out.values()) + sum(recorded.elsewhere.values())
    return _ABOUT.format(
        header=reference.HEADER,
        version=FUNCTIONAL.version,
        total=recorded.total,
        ran=ran,
        undecided=ran - decidable,
        untried=sum(not ending.is_tried for ending in recorded.endings.values()),
        decidable=decidable,
        left=recorded.total - not_taken - len(recorded.endings),
        percent=_percent(counts["passed"], decidable),
        of_all=_percent(counts["passed"], ran),
        **{column: counts[column] for column in ("passed", "skipped", *_TITLES)},
    )


def _percent(passed: int, of: int) -> str:
    return f"{100 * passed / of:.1f}" if of else "0"


def _column(ending: Ending, known: Sequence[Verdict]) -> str:
    if ending.state not in results.FAILED:
        return ending.state
    verdict = results.verdict_of(ending, known)
    return verdict.cause if verdict is not None else "environment"


def _reasons(endings: Iterable[Ending], known: Sequence[Verdict]) -> dict[str, dict[str, list[Ending]]]:
    """Return the failures by cause and reason; several verdicts may give the same reason."""
    found: dict[str, dict[str, list[Ending]]] = {}
    for ending in endings:
        if ending.state in results.FAILED and (verdict := results.verdict_of(ending, known)) is not None:
            found.setdefault(verdict.cause, {}).setdefault(verdict.why, []).append(ending)
    return found


def _groups(recorded: Results, known: Sequence[Verdict]) -> Iterator[str]:
    columns = ("passed", *_TITLES, "skipped")
    yield "| Group | Ran | Passed | Differ | By nature | By the run | Skipped themselves |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for group in suite.groups().values():
        counts = Counter(_column(ending, known) for ending in recorded.endings.values() if group.takes_file(ending.file))
        ran = sum(number for column, number in counts.items() if column != "skipped")
        yield f"| {group.name} | {ran} | {' | '.join(str(counts[column]) for column in columns)} |"
    yield ""


def _line(ending: Ending) -> str:
    return f"- `{ending.file}`: {plain(ending.name)}"


def _not_run(recorded: Results) -> Iterator[str]:
    yield "## What does not run"
    yield ""
    yield "Specs that need what one host does not have are left out:"
    yield ""
    for need, number in recorded.left_out.items():
        yield f"- {need}: {number}"
    yield ""
    yield "No group takes these files, which are about clusters, their operator, or hardware:"
    yield ""
    for file, number in recorded.elsewhere.items():
        yield f"- `{file}`: {number}"
