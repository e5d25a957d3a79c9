"""cloud-init's own word as a condition. All of it comes from a guest, which may say anything."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.kubevirt.plan.instance import cloudinit

STATUS = json.dumps({"v1": {"stage": "modules-config", "modules-config": {"errors": []}}})
FAILED = json.dumps({"v1": {"stage": None, "modules-final": {"errors": ["('scripts_user', ...)"]}}})


@pytest.mark.parametrize(
    ("result", "status", "expected"),
    [
        ("", "", None),
        ("", STATUS, ("Unknown", "Running")),
        (json.dumps({"v1": {"errors": []}}), STATUS, ("True", "Done")),
        (json.dumps({"v1": {"errors": ["runcmd failed"]}}), FAILED, ("False", "ModuleFailed")),
        ("[]", STATUS, ("Unknown", "Running")),
        ("{" * 100_000, STATUS, ("Unknown", "Running")),
    ],
)
def test_from_agent(result: str, status: str, expected: tuple[str, str] | None) -> None:
    found = cloudinit.from_agent(result, status)
    assert (None if found is None else (found.status, found.reason)) == expected


def test_the_failing_stage_and_what_it_said_are_named() -> None:
    found = cloudinit.from_agent(json.dumps({"v1": {"errors": ["runcmd failed\x1b[31m"]}}), FAILED)
    assert found is not None and found.message == "modules-final: runcmd failed [31m"


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("[ OK ] Started sshd", None),
        ("Cloud-init v. 22.4.2 finished at Sat, 21 Nov 2026", ("True", "Done")),
        ("WARNING: Running module scripts-user (<module 'x'>) failed\nCloud-init v. 22.4.2 finished at x", ("False", "ModuleFailed")),
        ("Failed to run module scripts-user", ("False", "ModuleFailed")),
    ],
)
def test_from_serial(log: str, expected: tuple[str, str] | None) -> None:
    found = cloudinit.from_serial(log)
    assert (None if found is None else (found.status, found.reason)) == expected


@given(st.text(), st.text())
def test_anything_a_guest_says_is_taken_without_harm(result: str, status: str) -> None:
    found = cloudinit.from_agent(result, status)
    assert found is None or all(each.isprintable() for each in found.message or "")
