"""KubeVirt decides and completes the requests of its unit tests as a dry-run here does, but for what `kubevirt-tables.toml` lists."""

import asyncio
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.reference import kubevirtplay, kubevirttables
from tests.reference.build import built
from tests.reference.kubevirtplay import PlayedRequest, Verdict
from tests.reference.recipes import KUBEVIRT_ADMISSION

pytestmark = [pytest.mark.reference, pytest.mark.long]

TABLE: dict[str, Any] = tomllib.loads((Path(__file__).parent / "kubevirt-tables.toml").read_text())
_INDEX = re.compile(r"\[\d+\]")


@dataclass(frozen=True)
class Played:
    """A request and what became of it on both sides."""

    request: PlayedRequest
    theirs: Verdict
    ours: Verdict


@pytest.fixture(scope="module")
def played(pytestconfig: pytest.Config) -> dict[str, list[Played]]:
    """Return what was played, by the setting of feature gates."""
    terminal = pytestconfig.pluginmanager.getplugin("terminalreporter")
    say = terminal.write_line if terminal else print
    program = built(KUBEVIRT_ADMISSION, say=say) / "admission"
    requests = kubevirtplay.requests(kubevirttables.recorded(say))
    found = {}
    for setting, gates in (("default", ()), ("gates", kubevirtplay.alpha_gates(program))):
        verdicts = zip(
            requests, kubevirtplay.theirs(program, requests, gates), asyncio.run(kubevirtplay.ours(requests, gates)), strict=True
        )
        found[setting] = [Played(*each) for each in verdicts]
    for setting, each in found.items():
        judged = [one for one in each if not one.theirs.failed]
        same = sum(1 for one in judged if _agree(one))
        say(f"KubeVirt's webhooks and ours agree on {same} of {len(judged)} requests ({same / len(judged):.1%}), gates: {setting}")
    return found


def _agree(one: Played) -> bool:
    return (one.theirs.object is None) == (one.ours.object is None)


def test_all_requests_were_recorded(played: dict[str, list[Played]]) -> None:
    """Fewer would show less than the page of differences says."""
    counts = Counter(("change" if one.request.old is not None else "creation") for one in played["default"])
    assert dict(counts) == TABLE["requests"]


def test_no_request_breaks_the_server(played: dict[str, list[Played]]) -> None:
    assert [one.ours.why for each in played.values() for one in each if one.ours.failed] == []


def _verdicts(played: dict[str, list[Played]]) -> Iterator[str]:
    for one in (one for each in played.values() for one in each if not one.theirs.failed and not _agree(one)):
        where, why = ("here", one.ours.why) if one.ours.object is None else ("there", one.theirs.why)
        yield f"{where} {'change' if one.request.old is not None else 'creation'} {one.request.kind.kind} {why}"


def _completions(played: dict[str, list[Played]]) -> Iterator[str]:
    for one in (one for each in played.values() for one in each):
        if one.theirs.object is not None and one.ours.object is not None:
            for path, pair in kubevirtplay.differences(one.request, one.theirs.object, one.ours.object).items():
                yield f"{one.request.kind.kind} {_INDEX.sub('[]', path)} {pair}"


def unlisted(found: Iterator[str], known: list[dict[str, str]]) -> tuple[Counter[str], list[str]]:
    """Return the differences that no entry of the table is about, and the entries that are about none."""
    patterns = {each["matches"]: re.compile(each["matches"]) for each in known}
    unknown: Counter[str] = Counter()
    seen: set[str] = set()
    for text in found:
        matched = [name for name, pattern in patterns.items() if pattern.search(text)]
        seen.update(matched)
        if not matched:
            unknown[text] += 1
    return unknown, [name for name in patterns if name not in seen]


@pytest.mark.spec("kubevirt", 174)
def test_verdicts_are_kubevirts(played: dict[str, list[Played]]) -> None:
    assert unlisted(_verdicts(played), TABLE["verdict"]) == (Counter(), [])


@pytest.mark.spec("kubevirt", 175)
def test_completed_objects_are_kubevirts(played: dict[str, list[Played]]) -> None:
    assert unlisted(_completions(played), TABLE["completion"]) == (Counter(), [])


@pytest.mark.parametrize("setting", kubevirtplay.SETTINGS)
def test_nearly_all_agree(played: dict[str, list[Played]], setting: str) -> None:
    """The list cannot grow without notice."""
    judged = [one for one in played[setting] if not one.theirs.failed]
    assert sum(1 for one in judged if _agree(one)) >= len(judged) * TABLE["agreement"][setting]
