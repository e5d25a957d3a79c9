"""Kubernetes' own tests, as far as they can be asked of this server: all that have to pass do."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.reference import kubernetes
from tests.reference.build import Binaries, built
from tests.reference.embedded import serving
from tests.reference.recipes import CONFORMANCE

pytestmark = [pytest.mark.reference, pytest.mark.long]


NEWEST = max(CONFORMANCE)
Programs = Callable[[str], Path]


@pytest.fixture(scope="module")
def programs(pytestconfig: pytest.Config) -> Programs:
    terminal = pytestconfig.pluginmanager.getplugin("terminalreporter")
    return lambda release: built(CONFORMANCE[release], say=terminal.write_line if terminal else print) / "e2e.test"


def check(program: Path, binaries: Binaries, directory: Path, listed: Sequence[str], content_type: str) -> None:
    there = set(kubernetes.every_test(program))
    tests = [test for test in listed if test in there]
    with serving(directory / "server") as server:
        went = kubernetes.Runner(program, binaries.kubectl, server.kubeconfig, directory, content_type).run(tests)
    failed = {test: went[test].message if test in went else "did not run" for test in tests}
    failed = {test: why for test, why in failed.items() if test not in went or went[test].state != "passed"}
    assert not failed, "\n".join(f"{test}\n    {why}" for test, why in failed.items())


# The newest release goes twice. `make soak` runs the one before, whose tests are almost the same.
OLDER = [pytest.param(each, kubernetes.JSON, marks=pytest.mark.soak) for each in CONFORMANCE if each != NEWEST]


@pytest.mark.spec("kube-api", 136)
@pytest.mark.parametrize(("release", "content_type"), [(NEWEST, kubernetes.JSON), (NEWEST, kubernetes.PROTOBUF), *OLDER])
def test_what_has_to_pass_passes(programs: Programs, binaries: Binaries, tmp_path: Path, release: str, content_type: str) -> None:
    wanted = kubernetes.expected()
    assert len(wanted.run) >= 60
    check(programs(release), binaries, tmp_path, wanted.run, content_type)


@pytest.mark.soak
@pytest.mark.parametrize("release", CONFORMANCE)
def test_what_takes_long_passes_too(programs: Programs, binaries: Binaries, tmp_path: Path, release: str) -> None:
    check(programs(release), binaries, tmp_path, kubernetes.expected().slow, kubernetes.JSON)


def test_something_is_said_of_every_test(programs: Programs) -> None:
    wanted = kubernetes.expected()
    tests = {test for release in CONFORMANCE for test in kubernetes.every_test(programs(release))}
    ours = {*wanted.run, *wanted.slow}
    assert ours <= tests, "these tests are not there any more"
    assert len(ours) == len(wanted.run) + len(wanted.slow)
    unsaid = [test for test in tests if test not in ours and not wanted.why_not(test)]
    assert not unsaid, "say in conformance/tests.toml whether these are run, or why not"


def test_the_page_tells_how_each_test_went() -> None:
    good, bad, other = "[sig-auth] A works [Conformance]", "[sig-auth] B works", "[sig-node] C runs a pod [Conformance]"
    wanted = kubernetes.Expected([good, bad], [], [kubernetes.Reason("it runs pods", [re.compile("C runs")])])
    spec = {"LeafNodeType": "It", "RunTime": 2_000_000_000, "ContainerHierarchyTexts": ["[sig-auth] A"]}
    report = [
        {**spec, "LeafNodeText": "works [Conformance]", "State": "passed"},
        {**spec, "ContainerHierarchyTexts": ["[sig-auth] B"], "LeafNodeText": "works", "State": "failed", "Failure": {"Message": "no"}},
        {**spec, "ContainerHierarchyTexts": None, "LeafNodeText": other, "State": "skipped"},
        {**spec, "LeafNodeType": "BeforeSuite", "LeafNodeText": "", "State": "passed"},
    ]
    went = dict(kubernetes.outcomes([{"SpecReports": report}]))
    assert went == {good: kubernetes.Outcome("passed", 2.0, ""), bad: kubernetes.Outcome("failed", 2.0, "no")}
    newest = kubernetes.Release("v1.2.3", [good, bad, other], went)
    made = kubernetes.page([newest, kubernetes.Release("v1.1.1", [good], {good: went[good]})], wanted)
    assert f"## Passed\n\n- {good}\n\n## Failed\n\n- {bad} (v1.2.3)\n" in made
    assert "## v1.2.3: 1 of 2 passed" in made
    assert "## v1.1.1: 1 of 1 passed" in made
    assert f"### It runs pods\n\n- {other}\n" in made
    assert "| auth | 1 | 1 | 1 | 0 |" in made
