"""Programs beside QEMU: one with a directory elsewhere gets it open, because its user cannot pass through what is above."""

import os
from pathlib import Path

from paddock.engine.machine import startup
from paddock.engine.machine.argv.line import HelperProgram
from paddock.engine.machine.directory import Directory

SCRIPT = 'place=${1#dir=}; place=${place%%,*}; echo "$place" > "$place/told"'


def test_a_directory_elsewhere_is_handed_over_open(tmp_path: Path) -> None:
    found, state = Directory(tmp_path / "machine"), tmp_path / "states" / "tpm"
    found.make()
    state.mkdir(parents=True)
    argv = ("/bin/sh", "-c", SCRIPT, "helper", f"dir={state},mode=0600")
    with (tmp_path / "log").open("wb") as log:
        pid = startup.start_helper(found, HelperProgram("tpm", argv, "tpm.sock", directories=(str(state),)), log.fileno(), 0)
        os.waitpid(pid, 0)
    assert (state / "told").read_text().startswith("/proc/self/fd/"), (tmp_path / "log").read_text()


def test_a_directory_of_its_own_keeps_its_name(tmp_path: Path) -> None:
    found = Directory(tmp_path / "machine")
    found.make()
    (found.run / "tpm-state").mkdir()
    argv = ("/bin/sh", "-c", SCRIPT, "helper", "dir=tpm-state,mode=0600")
    with (tmp_path / "log").open("wb") as log:
        pid = startup.start_helper(found, HelperProgram("tpm", argv, "tpm.sock", directories=("tpm-state",)), log.fileno(), 0)
        os.waitpid(pid, 0)
    assert (found.run / "tpm-state" / "told").read_text() == "tpm-state\n"
