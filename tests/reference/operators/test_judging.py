"""KubeVirt's own judgement of machines, beside Paddock's for clusters. What differs is listed and explained in `judging.toml`."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from paddock.kubernetes.schema.kind import AdmissionSettings
from tests.reference import differences, questions, verdict
from tests.reference.client import Api
from tests.reference.differences import Case
from tests.reference.operators.conftest import Real
from tests.reference.paddock_side import judge
from tests.reference.verdict import NoVerdict, Question, Verdict

pytestmark = pytest.mark.reference
KNOWN = Path(__file__).with_name("judging.toml")
KINDS = (
    "VirtualMachine.kubevirt.io",
    "VirtualMachineInstance.kubevirt.io",
    "VirtualMachineInstanceReplicaSet.kubevirt.io",
    "VirtualMachinePool.pool.kubevirt.io",
)
_TIMES = 5


def test_the_objects_of_the_dialects_tests_get_the_same_verdict(real: Real, tmp_path: Path) -> None:
    """Among them is an object against every rule of docs/spec/kubevirt.md 2.11, and one beside it that the rule accepts."""
    cases = list(_cases(tmp_path))
    found = differences.compare_all(cases, _asked(real.cluster.api, [case.question for case in cases]))
    known = differences.read(KNOWN)
    unexplained = differences.unexplained(found, known)
    assert not unexplained, unexplained
    stale = differences.stale(found, known)
    assert not stale, "\n".join(stale)


def _cases(directory: Path) -> Iterator[Case]:
    there = AdmissionSettings(target="cluster")
    for case in questions.recorded(directory / "admissions", KINDS):
        # Here every rule counts: KubeVirt has them all.
        yield replace(case, ours=judge(case.question, there), own=frozenset())


def _asked(api: Api, asked: Sequence[Question]) -> list[Verdict]:
    """In the order of the questions."""

    def ask(question: Question) -> Verdict:
        for _ in range(_TIMES):
            try:
                return verdict.ask(api, question)
            except NoVerdict as why:
                # A controller wrote to the object meanwhile.
                if "409" not in str(why):
                    raise
        return verdict.ask(api, question)

    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(ask, asked))
