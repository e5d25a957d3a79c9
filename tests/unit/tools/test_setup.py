"""The last lines of tools/setup.sh."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
_HINT = re.compile(r"^path_hint\(\) \{\n.*?^\}\n", re.MULTILINE | re.DOTALL)


def hint(program: Path, path: str) -> str:
    """Return what the script says about a program in a shell with this PATH."""
    found = _HINT.search((ROOT / "tools" / "setup.sh").read_text(encoding="utf-8"))
    assert found is not None
    script = f"set -euo pipefail\nsay() {{ printf '%s\\n' \"$*\"; }}\n{found[0]}\npath_hint '{program}'\n"
    return subprocess.run(["bash", "-c", script], env={"PATH": path}, capture_output=True, text=True, check=True).stdout


def installed(folder: Path) -> Path:
    folder.mkdir()
    program = folder / "paddock"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program


def test_setup_prints_the_line_that_puts_the_program_on_path(tmp_path: Path) -> None:
    program = installed(tmp_path / "bin")
    line = hint(program, "/usr/bin:/bin").partition(": ")[2]
    ran = subprocess.run(["bash", "-c", f"{line}command -v paddock"], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True)
    assert ran.stdout.strip() == str(program)


def test_setup_says_nothing_if_the_shell_finds_it(tmp_path: Path) -> None:
    program = installed(tmp_path / "bin")
    assert hint(program, f"{program.parent}:/usr/bin:/bin") == ""


def test_another_program_of_that_name_does_not_count(tmp_path: Path) -> None:
    program, other = installed(tmp_path / "bin"), installed(tmp_path / "other")
    assert str(program.parent) in hint(program, f"{other.parent}:/usr/bin:/bin")
