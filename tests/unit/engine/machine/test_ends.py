"""Why a run ended."""

import pytest

from paddock.engine.machine.ends import SHUTDOWNS, Seen, describe, judge

TABLE = [
    (Seen(("guest-shutdown",), True, 0), "guest-shutdown"),
    (Seen(("guest-reboot",), True, 0), "guest-reboot"),
    (Seen(("guest-shutdown", "killed"), True, -9), "guest-shutdown"),  # it obeyed, and QEMU was slow to go
    (Seen(("killed",), True, -9), "killed"),
    (Seen(("killed",), False, None), "killed"),
    (Seen(("panicked", "guest-shutdown"), True, 0), "panicked"),
    (Seen(("internal-error", "killed"), True, -9), "internal-error"),
    (Seen(("watchdog",), True, 0), "watchdog"),
    (Seen(("saved",), True, 0), "saved"),
    (Seen((), True, 0), "crashed"),  # vanished without a word
    (Seen((), True, 1), "crashed"),
    (Seen((), True, -11), "crashed"),
    (Seen((), True, None), "crashed"),
    (Seen((), False, 1), "never-started"),
    (Seen((), True, None, same_boot=False), "host-reboot"),
    (Seen(("guest-shutdown",), True, None, same_boot=False), "guest-shutdown"),
]


@pytest.mark.parametrize(("seen", "reason"), TABLE)
def test_the_reason(seen: Seen, reason: str) -> None:
    assert judge(seen) == reason


def test_every_reason_of_qemu_is_known() -> None:
    # qapi/run-state.json, ShutdownCause, as of QEMU 9
    causes = {"host-error", "host-qmp-quit", "host-qmp-system-reset", "host-signal", "host-ui", "guest-shutdown", "guest-reset"}
    assert causes | {"guest-panic", "subsystem-reset"} <= set(SHUTDOWNS)


def test_a_status_in_words() -> None:
    assert describe(None) == describe(0) == ""
    assert describe(1) == "QEMU ended with status 1"
    assert describe(-11) == "QEMU was ended by signal SIGSEGV"
    assert describe(-99) == "QEMU was ended by signal 99"
