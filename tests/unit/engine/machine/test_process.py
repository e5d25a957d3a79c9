"""The kernel's facts about processes."""

import os
import subprocess
import sys

from paddock.engine.machine.process import cpu_seconds, wanted_seconds


def test_who_waits_for_a_processor_wants_it() -> None:
    """Two that want all of one CPU use half of it each; a guest that boots on a busy host must not look as if it slept."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        while sum(cpu_seconds(busy.pid)) < 0.2:
            pass
        assert wanted_seconds(busy.pid) > 1.3 * sum(cpu_seconds(busy.pid))
    finally:
        os.sched_setaffinity(0, before)
        busy.kill()
        busy.wait()


def test_one_that_is_gone_wants_nothing() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    assert wanted_seconds(gone.pid) == 0
