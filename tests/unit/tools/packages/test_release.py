"""What a release says of itself, and what the units of systemd promise."""

import configparser
import json
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from paddock.app.commands import down
from tests.kit.pages import blocks
from tools.packages import bill, deb, release, wheel

ROOT = Path(release.__file__).resolve().parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
CHANGELOG = "# Changelog\n\n## 2.0.0 (not released yet)\n\nNew.\n\n## 1.0.0 (2026-01-02)\n\n### Added\n\n- All.\n"


def test_the_section_of_a_version() -> None:
    assert release.section(CHANGELOG, "2.0.0") == ("## 2.0.0 (not released yet)\n\nNew.\n", False)
    assert release.section(CHANGELOG, "1.0.0") == ("## 1.0.0 (2026-01-02)\n\n### Added\n\n- All.\n", True)
    with pytest.raises(SystemExit, match=r"no section 3\.0\.0"):
        release.section(CHANGELOG, "3.0.0")
    assert release.section((ROOT / "CHANGELOG.md").read_text(), VERSION)[0].startswith(f"## {VERSION}")


def test_the_bill_of_materials_names_what_runs() -> None:
    made = bill.wheel_bill(VERSION)
    names = {each["name"] for each in made["components"]}
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert {each.split(">=")[0].lower().replace(".", "-") for each in declared} <= names
    assert "setuptools" not in names
    assert json.loads(json.dumps(made)) == bill.wheel_bill(VERSION), "the same commit gives the same bill"
    assert made["metadata"]["component"]["properties"][0]["value"]


def test_the_lock_of_the_package_is_the_locks_without_the_build_backend(tmp_path: Path) -> None:
    text = wheel.runtime_lock(tmp_path).read_text()
    assert "setuptools==" not in text
    assert text.count("==") == (ROOT / "requirements.lock").read_text().count("==") - 1
    assert all("--hash=sha256:" in block for block in text.split("\n\n") if "==" in block)


@pytest.mark.parametrize("kind", ["system", "user"])
def test_stopping_the_service_ends_no_guest(kind: str) -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(ROOT / "deploy" / "systemd" / kind / "paddock.service")
    service = unit["Service"]
    assert service["KillMode"] == "process"
    assert service["Type"] == "notify"
    assert service["ExecStart"] == "/usr/bin/paddock up $PADDOCK_OPTIONS"
    # Each of these would take from QEMU, or from Paddock as root, what it needs.
    unwanted = {
        "PrivateTmp",
        "PrivateDevices",
        "ProtectSystem",
        "ProtectHome",
        "NoNewPrivileges",
        "MemoryDenyWriteExecute",
        "PrivateNetwork",
    }
    assert not unwanted & set(service)


@pytest.mark.parametrize("kind", ["system", "user"])
def test_guests_shut_down_after_the_service_and_only_then(kind: str) -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.read(ROOT / "deploy" / "systemd" / kind / "paddock-guests.service")
    # Units stop in the reverse order of their starts: a server that ran on would start the guests again.
    assert unit["Unit"]["Before"] == "paddock.service"
    assert not {"PartOf", "BindsTo", "Requires"} & set(unit["Unit"]), "a stop of the service must not reach the guests"
    words = unit["Service"]["ExecStop"].split()
    assert words[:3] == ["/usr/bin/paddock", "down", "--guests"]
    assert float(words[words.index("--timeout") + 1]) < float(unit["Service"]["TimeoutStopSec"])
    assert down.parser().parse_args(words[2:]).guests
    for script in ("postinst", "prerm", "postrm"):
        text = (ROOT / "deploy" / "debian" / script).read_text()
        assert "restart paddock-guests" not in text and "stop paddock-guests" not in text


def test_the_package_is_for_the_pythons_that_are_supported() -> None:
    assert set(deb.PYTHONS) == {"3.11", "3.13"}
    control = (ROOT / "deploy" / "debian" / "control").read_text()
    for name in ("qemu-system-x86", "qemu-utils", "nftables", "python3 (>= @python@)"):
        assert name in control


@pytest.mark.parametrize("script", ["postinst", "prerm", "postrm"])
def test_no_script_of_the_package_ends_guests(script: str) -> None:
    text = (ROOT / "deploy" / "debian" / script).read_text()
    assert not any(word in text for word in ("--purge", "pkill", "killall", "rm -rf"))


def test_the_page_of_the_installation_writes_another_program_into_the_units_of_a_user(tmp_path: Path) -> None:
    units = shutil.copytree(ROOT / "deploy" / "systemd" / "user", tmp_path / ".config" / "systemd" / "user")
    commands = [each for block in blocks(ROOT / "docs" / "start" / "install.md") if block.is_shell for each in block.commands]
    [command] = [each for each in commands if each.startswith("sed ")]
    program = tmp_path / "bin" / "paddock"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    environment = {"HOME": str(tmp_path), "PATH": f"{program.parent}:/usr/bin:/bin"}
    subprocess.run(["bash", "-c", command], env=environment, check=True)
    lines = [line for unit in units.iterdir() for line in unit.read_text().splitlines() if "paddock " in line and line.startswith("Exec")]
    assert len(lines) == 2
    assert all(line.partition("=")[2].startswith(f"{program} ") for line in lines)
