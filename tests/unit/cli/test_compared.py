"""The pairs of objects that two inputs compare."""

from pathlib import Path

import pytest

from paddock.cli.exits import FINDINGS, GOOD
from tests.unit.cli.commands import paddock

STAKATER = (
    "apiVersion: infrastructure.stakater.com/v1\nkind: VirtualMachine\nmetadata: {name: %s}\nspec: {parameters: {memory: {guest: %s}}}\n"
)
VITISTACK = "apiVersion: vitistack.io/v1alpha1\nkind: Machine\nmetadata: {name: %s}\nspec: {template: small}\n"
POOL = "apiVersion: pool.kubevirt.io/%s\nkind: VirtualMachinePool\nmetadata: {name: p}\nspec: %s\n"
POOL_SPEC = """
  selector: {matchLabels: {a: b}}
  virtualMachineTemplate:
    metadata: {labels: {a: b}}
    spec: {runStrategy: Halted, template: {metadata: {labels: {a: b}}, spec: {domain: {devices: {}, memory: {guest: 1Gi}}}}}"""
FOREIGN = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {replicas: %s}\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def compare(command: str, old: str, new: str) -> tuple[int, list[str]]:
    Path("old.yaml").write_text(old)
    Path("new.yaml").write_text(new)
    files = ["-f", "old.yaml", "-f", "new.yaml"] if command == "diff" else ["-f", "new.yaml", "--against", "old.yaml"]
    answer = paddock(command, *files)
    return answer.code, answer.out.splitlines()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (STAKATER % ("a", "2Gi"), STAKATER % ("a", "2048Mi"), []),
        # the order of documents says nothing
        (STAKATER % ("a", "2Gi") + "---\n" + VITISTACK % "b", VITISTACK % "b" + "---\n" + STAKATER % ("a", "2Gi"), []),
        (VITISTACK % "b", VITISTACK % "b" + "---\n" + FOREIGN % 1, ["new.yaml:6:1: Deployment/d: added"]),
        (VITISTACK % "b" + "---\n" + FOREIGN % 1, VITISTACK % "b", ["old.yaml:6:1: Deployment/d: removed"]),
        (FOREIGN % 1, FOREIGN % 2, ["new.yaml:1:1: Deployment/d: differs"]),
        # the version does not make another object
        (POOL % ("v1alpha1", POOL_SPEC), POOL % ("v1beta1", POOL_SPEC), []),
        # nor does the namespace that is meant when none is given
        (VITISTACK % "b", VITISTACK % "b, namespace: default", []),
    ],
)
def test_diff(old: str, new: str, expected: list[str]) -> None:
    code, lines = compare("diff", old, new)
    assert lines == expected
    assert code == (FINDINGS if expected else GOOD)


def test_machines_of_two_dialects_are_compared_as_what_they_become() -> None:
    code, lines = compare("diff", STAKATER % ("a", "2Gi"), VITISTACK % "a")
    assert code == FINDINGS
    assert "new.yaml:1:1: VirtualMachine/a: spec.running: added true" in lines
    assert not any("memory" in line for line in lines)
    _, lines = compare("diff", STAKATER % ("a", "4Gi"), VITISTACK % "a")
    assert 'new.yaml:1:1: VirtualMachine/a: spec.template.spec.domain.memory.guest: "4Gi" -> "2Gi"' in lines


def test_a_machine_equals_what_it_becomes() -> None:
    Path("old.yaml").write_text(STAKATER % ("a", "2Gi"))
    Path("new.yaml").write_text(paddock("render", "-f", "old.yaml").out)
    assert paddock("diff", "-f", "old.yaml", "-f", "new.yaml") == (GOOD, "", "")


def test_plan_does_not_compare_dialects() -> None:
    code, lines = compare("plan", STAKATER % ("a", "2Gi"), VITISTACK % "a")
    assert code == GOOD
    assert lines == [
        "new.yaml:1:1: created: Machine/a: it is not in the old manifests",
        "old.yaml:1:1: no effect: VirtualMachine/a: not in the new manifests: it stays as it is; delete it if it is to go",
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("cpu: {cores: 1}", "firmware: {secureBoot: true}"),
        ("cpu: {cores: 1}", "networks: [{name: default}]"),
        ("networks: [{name: default}]", "networks: [{name: default, type: pod}]"),
    ],
)
def test_plan_knows_defaults_that_depend_on_other_fields(before: str, after: str) -> None:
    form = "apiVersion: infrastructure.stakater.com/v1\nkind: VirtualMachine\nmetadata: {name: a}\nspec: {parameters: {%s}}\n"
    code, lines = compare("plan", form % before, form % after)
    assert code == GOOD
    assert lines
    assert all(line.endswith(": it becomes the same objects as before") and ": no effect: " in line for line in lines)


def test_plan_of_a_kind_that_is_not_known() -> None:
    code, lines = compare("plan", FOREIGN % 1, FOREIGN % 2)
    assert (code, lines) == (GOOD, ["new.yaml:1:1: unknown: Deployment/d: differs: Paddock does not know this kind"])


def test_plan_shows_what_the_rules_about_changes_refuse() -> None:
    change = POOL_SPEC.replace("{a: b}", "{a: c}")
    code, lines = compare("plan", POOL % ("v1beta1", POOL_SPEC), POOL % ("v1beta1", change))
    assert code == FINDINGS
    (line,) = (line for line in lines if "spec.selector" in line)
    assert ": refused: VirtualMachinePool/p: spec.selector.matchLabels.a: " in line
    assert "field is immutable (kubevirt/pool-change)" in line


@pytest.mark.parametrize("status", ["", "status: {vm: {ready: true}}\n"])
def test_plan_refuses_what_is_fixed_once_a_machine_was_made(status: str) -> None:
    """Manifests have no status; what they say was carried out all the same."""
    before = STAKATER % ("a", "2Gi")
    after = before.replace("{memory", "{dataSource: {name: rhel8}, memory")
    code, (line,) = compare("plan", before + status, after)
    assert (code, line.split(": ")[1]) == (FINDINGS, "refused")
    assert "field is immutable (stakater/immutable); made anew it would be: data loss" in line
