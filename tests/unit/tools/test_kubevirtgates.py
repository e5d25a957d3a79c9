"""Reading the feature gates of a release, and what of ours differs from them."""

from pathlib import Path

import pytest

from paddock.kubevirt.kinds.gates import GATES
from tools import kubevirtgates

_NEW = """package featuregate

const (
	GPUGate = "GPU"
	// VSOCK: alpha
	VSOCKGate = "VSOCK"
)

func init() {
	RegisterFeatureGate(FeatureGate{Name: GPUGate, State: GA})
	RegisterFeatureGate(FeatureGate{Name: VSOCKGate, State: Alpha})
}
"""
_OLD = 'package virtconfig\n\nconst (\n\tGPUGate = "GPU"\n\tVSOCKGate = "VSOCK"\n)\n'


def module(root: Path, text: str, name: str = "feature-gates.go") -> Path:
    folder = root / "pkg" / "virt-config"
    (folder / "featuregate").mkdir(parents=True)
    (folder / name).write_text(text)
    (folder / "featuregate" / "fake_test.go").write_text("RegisterFeatureGate(FeatureGate{Name: Fake, State: GA})")
    return root


def test_registered_gates_have_their_state(tmp_path: Path) -> None:
    assert kubevirtgates.states(module(tmp_path, _NEW, "featuregate/active.go"), 9) == {"GPU": "GA", "VSOCK": "Alpha"}


def test_plain_constants_of_old_releases_must_be_named(tmp_path: Path) -> None:
    assert kubevirtgates.states(module(tmp_path, _OLD), 3) == {"GPU": "Alpha", "VSOCK": "Alpha"}


@pytest.mark.parametrize("text", [_NEW.replace("State: GA", "Stage: GA"), "package virtconfig\n"])
def test_a_source_that_cannot_be_read_is_no_source_without_gates(tmp_path: Path, text: str) -> None:
    with pytest.raises(ValueError, match="can be read"):
        kubevirtgates.states(module(tmp_path, text), 9)


@pytest.mark.parametrize(
    ("gate", "release", "state", "words"),
    [
        ("VSOCK", 9, "Alpha", None),
        ("VSOCK", 9, "Beta", "is Beta, and has another default"),
        ("VSOCK", 9, "GA", "is GA, and has another default"),
        ("VSOCK", 9, "Discontinued", "naming it has another effect"),
        ("VSOCK", 9, "", "is asked for, and the release does not know it"),
        ("GPU", 4, "GA", None),
        ("GPU", 3, "GA", "is GA, and has another default"),
        ("GPUsWithDRA", 5, "", None),
        ("GPUsWithDRA", 5, "Alpha", "is not asked for, and is Alpha"),
        ("GPUsWithDRA", 8, "Beta", None),
        ("GPUsWithDRA", 9, "Beta", None),
        ("GPUsWithDRA", 9, "Alpha", "is Alpha, and has another default"),
    ],
)
def test_a_difference_is_named(gate: str, release: int, state: str, words: str | None) -> None:
    found = [each for each in kubevirtgates.differences({release: {gate: state}}) if each.startswith(f"1.{release}: {gate} ")]
    assert any(words in each for each in found) if words else not found


def test_an_older_name_counts_as_long_as_the_release_has_it() -> None:
    gate = "EnableVirtioFsStorageVolumes"
    states = {gate: "Alpha", "ExperimentalVirtiofsSupport": "Deprecated"}
    found = list(kubevirtgates.differences({7: states, 8: states}))
    assert [each for each in found if gate in each] == [
        f"1.8: {gate} has ExperimentalVirtiofsSupport as its older name, which is Deprecated"
    ]


def test_what_is_not_asked_is_of_gates_that_are_there() -> None:
    assert {gate for gate, _ in kubevirtgates.UNASKED} <= GATES.keys()
