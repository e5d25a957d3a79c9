"""The rules across fields: every refusal and every warning with its place and its words, and the good form beside it."""

from typing import Any

import pytest

from paddock.kubernetes import catalog
from paddock.kubernetes.schema.finding import Severity
from tests.unit.dialects.virtrigaud.kinds import cases_machine, cases_others
from tests.unit.dialects.virtrigaud.kinds.cases import Rule
from tests.unit.dialects.virtrigaud.kinds.cases_others import NFS, S3
from tests.unit.dialects.virtrigaud.kinds.objects import KINDS, admitted, marks, said

ALL = (*cases_machine.CASES, *cases_others.CASES)


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=f"{index} {case.kind} {case.id}", marks=marks(case.items)) for index, case in enumerate(ALL)],
)
def test_rules(case: Rule) -> None:
    severity = Severity.WARNING if case.warns else Severity.ERROR
    bad = admitted(case.kind, case.bad)
    found = [(each.field, each.rule) for each in bad.findings if each.severity is severity and case.words in each.message]
    assert (case.field, case.id) in found, bad.findings
    assert bad.accepted is case.warns
    good = admitted(case.kind, case.good)
    assert said(good) == []
    assert case.field not in [field for field, message in said(good, Severity.WARNING) if case.words in message]


@pytest.mark.spec("virtrigaud", 20)
@pytest.mark.parametrize(
    ("kind", "block", "missing"),
    [("s3", S3, "bucket"), ("s3", S3, "credentialsSecretRef"), ("nfs", NFS, "server"), ("nfs", NFS, "export")],
)
def test_storage_says_where_it_is(kind: str, block: dict[str, Any], missing: str) -> None:
    rest = {name: value for name, value in block.items() if name != missing}
    found = said(admitted("VMMigration", {".storage": {"type": kind, kind: rest}}))
    assert found == [(f"spec.storage.{kind}.{missing}", "Required value")]


@pytest.mark.spec("virtrigaud", 20)
def test_storage_is_a_claim_when_nothing_is_said() -> None:
    assert admitted("VMMigration", {".storage": {}}).data["spec"]["storage"]["type"] == "pvc"


@pytest.mark.spec("virtrigaud", 19)
def test_labels_and_annotations_of_a_set_survive() -> None:
    metadata = {"labels": {"app": "web", "tier": "front"}, "annotations": {"example.com/a": "b"}, "generateName": "kept"}
    admission = admitted("VMSet", {".template.metadata": metadata})
    assert admission.accepted
    assert admission.data["spec"]["template"]["metadata"] == metadata


def test_secrets_are_not_repeated() -> None:
    for changes in (
        {".userData.cloudInit.inline": ["hunter2"]},
        {".userData.ignition.inline": ["hunter2"]},
        {".metaData.cloudInit.inline": {"a": "hunter2"}},
    ):
        told = " ".join(message for _, message in said(admitted("VirtualMachine", changes)))
        assert "must be a string" in told
        assert "hunter2" not in told


@pytest.mark.parametrize("text", ["30 2 * * 1-5", "0 0 3 * * ?", "0 0 0 1 1 ? 2030", "@every 1h30m", "@hourly", "0 0 * * SUN,7"])
def test_schedules(text: str) -> None:
    assert said(admitted("VMSnapshot", {".schedule.cronSpec": text})) == []


def test_every_rule_has_a_text_and_a_case() -> None:
    tested = {(case.kind, case.id) for case in ALL}
    # The rules of a machine are those of the machines of a set, too.
    tested |= {("VMSet", name) for kind, name in tested if kind == "VirtualMachine"}
    for kind in KINDS:
        declared = catalog.find("infra.virtrigaud.io", kind)
        assert declared is not None
        ids = [each.id for each in declared.rules]
        assert len(set(ids)) == len(ids)
        assert all(each.id.startswith("virtrigaud/") and each.text for each in declared.rules)
        assert all(each.id.startswith("virtrigaud/") and each.text for each in declared.transitions)
        assert {(kind, name) for name in ids} <= tested
