"""The reasons for the end of a run."""

import pytest

from paddock.engine.machine.observation import EndReason
from paddock.engine.machine.runends import SHUTDOWNS, RunEvidence, describe, judge, text_of

TABLE = [
    (RunEvidence(("guest-shutdown",), True, 0), "guest-shutdown"),
    (RunEvidence(("guest-reboot",), True, 0), "guest-reboot"),
    (RunEvidence(("guest-shutdown", "killed"), True, -9), "guest-shutdown"),  # it obeyed, and QEMU was slow to go
    (RunEvidence(("killed",), True, -9), "killed"),
    (RunEvidence(("killed",), False, None), "killed"),
    (RunEvidence(("panicked", "guest-shutdown"), True, 0), "panicked"),
    (RunEvidence(("internal-error", "killed"), True, -9), "internal-error"),
    (RunEvidence(("watchdog",), True, 0), "watchdog"),
    (RunEvidence(("saved",), True, 0), "saved"),
    (RunEvidence((), True, 0), "crashed"),  # vanished without a word
    (RunEvidence((), True, 1), "crashed"),
    (RunEvidence((), True, -11), "crashed"),
    (RunEvidence((), True, None), "crashed"),
    (RunEvidence((), False, 1), "never-started"),
    (RunEvidence((), True, None, same_boot=False), "host-reboot"),
    (RunEvidence(("guest-shutdown",), True, None, same_boot=False), "guest-shutdown"),
    (RunEvidence(("host-reboot",), True, None), "host-reboot"),  # shut down with the host, which then stayed up
    (RunEvidence(("guest-shutdown", "host-reboot"), True, None), "guest-shutdown"),
]


@pytest.mark.parametrize(("seen", "reason"), TABLE)
def test_the_reason(seen: RunEvidence, reason: str) -> None:
    assert judge(seen) == reason


def test_every_reason_of_qemu_is_known() -> None:
    # qapi/run-state.json, ShutdownCause, as of QEMU 9
    causes = {"host-error", "host-qmp-quit", "host-qmp-system-reset", "host-signal", "host-ui", "guest-shutdown", "guest-reset"}
    assert causes | {"guest-panic", "subsystem-reset"} <= set(SHUTDOWNS)


@pytest.mark.spec("kubevirt", 83, "`internal-error` becomes Failed with text")
@pytest.mark.parametrize("reason", ["internal-error", "crashed", "never-started", "panicked"])
def test_the_text_of_an_end_has_the_last_lines_of_qemu(reason: EndReason) -> None:
    assert text_of(reason, "", -6, lambda: "KVM internal error") == "QEMU was ended by signal SIGABRT\nKVM internal error"
    assert text_of(reason, "no such disk", -6, lambda: "KVM internal error") == "no such disk"


@pytest.mark.parametrize("reason", ["guest-shutdown", "killed"])
def test_an_end_that_was_meant_has_no_text(reason: EndReason) -> None:
    assert text_of(reason, "", 0, lambda: "shutting down") == ""


def test_a_status_in_words() -> None:
    assert describe(None) == describe(0) == ""
    assert describe(1) == "QEMU ended with status 1"
    assert describe(-11) == "QEMU was ended by signal SIGSEGV"
    assert describe(-99) == "QEMU was ended by signal 99"
