"""Admission decides as KubeVirt's own webhooks do (`verdicts.yaml`), but for the differences that `differences.yaml` gives reasons for."""

from fnmatch import fnmatchcase
from typing import Any

import pytest
import yaml

from paddock.kubernetes.admission import admit
from paddock.kubernetes.schema.finding import CauseType, Finding, Severity
from paddock.kubernetes.schema.kind import AdmissionSettings
from tests.kit.declarations import kubevirtvariants

OBJECTS = dict(kubevirtvariants.objects())
VERDICTS: dict[str, list[str]] = yaml.safe_load(kubevirtvariants.VERDICTS.read_text())
DIFFERENCES: list[dict[str, Any]] = yaml.safe_load((kubevirtvariants.FOLDER / "differences.yaml").read_text())["differences"]
_KNOWN = [name for each in DIFFERENCES for name in each["names"]]


def refusals(name: str, setting: str) -> list[Finding]:
    """Return what refuses an object here."""
    settings = AdmissionSettings(gates=frozenset(kubevirtvariants.SETTINGS[setting]))
    return [found for found in admit(OBJECTS[name], settings).findings if found.severity is Severity.ERROR]


def theirs(setting: str) -> dict[str, str]:
    """Return the objects that KubeVirt refuses, each with the causes."""
    return dict(line.split(": ", 1) for line in VERDICTS[setting])


def differing(setting: str) -> dict[str, str]:
    """Return the objects whose verdicts differ, each with who refuses."""
    refused = theirs(setting)
    found = {name: bool(refusals(name, setting)) for name in OBJECTS}
    return {name: "here" if ours else "there" for name, ours in found.items() if ours != (name in refused)}


@pytest.mark.spec("kubevirt", 154)
@pytest.mark.parametrize("setting", kubevirtvariants.SETTINGS)
def test_verdicts_are_kubevirts(setting: str) -> None:
    unknown = {name: who for name, who in differing(setting).items() if not any(fnmatchcase(name, known) for known in _KNOWN)}
    assert unknown == {}


def test_no_difference_is_gone() -> None:
    seen = [f"{name} {who}" for setting in kubevirtvariants.SETTINGS for name, who in differing(setting).items()]
    stale = [
        known for each in DIFFERENCES for known in each["names"] if not any(fnmatchcase(one, f"{known} {each['refused']}") for one in seen)
    ]
    assert stale == []
    assert all(each["why"] for each in DIFFERENCES)


def test_nearly_all_agree() -> None:
    for setting in kubevirtvariants.SETTINGS:
        assert len(differing(setting)) <= len(OBJECTS) * 0.06


@pytest.mark.parametrize("kind", ["VirtualMachineInstancetype", "VirtualMachineInstance"])
def test_what_kubevirt_calls_missing_is_missing_here(kind: str) -> None:
    """The reason of the cause is the same wherever KubeVirt names the field."""
    for name, causes in theirs("default").items():
        if "FieldValueInvalid" in causes:
            # Beside a value that is wrong, KubeVirt asks for what it would have filled in.
            continue
        wanted = {cause.split(" ", 1)[1] for cause in causes.split(", ") if cause.startswith(f"{CauseType.REQUIRED} ")}
        if wanted and name.startswith(f"{kind} ") and not any(fnmatchcase(name, known) for known in _KNOWN):
            assert wanted <= {found.field for found in refusals(name, "default") if found.cause is CauseType.REQUIRED}, name
