"""The package lists that a guest is made from."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from paddock.base.images.build import apt
from paddock.base.images.build.programs import BuildError

DEBIAN = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\nVERSION_CODENAME=bookworm\n'
UBUNTU = 'ID=ubuntu\nVERSION_CODENAME=noble\nID_LIKE="debian"\n'


class Programs:
    """Apt: knows packages or not, and has a network or not."""

    def __init__(self) -> None:
        self.ran: list[list[str]] = []
        self.knows = False
        self.reaches = True

    def run(self, command: Sequence[str | Path]) -> bytes:
        """Do as apt would."""
        self.ran.append([str(word) for word in command])
        if "update" in command and not self.reaches:
            raise BuildError("apt-get failed")
        if "download" in command and not self.knows:
            raise BuildError("apt-get failed")
        return b""


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> Programs:
    found = Programs()
    monkeypatch.setattr(apt, "run", found.run)
    return found


def test_the_hosts_own_lists_serve_where_they_know_the_packages(programs: Programs, tmp_path: Path) -> None:
    programs.knows = True
    assert apt.options(tmp_path, ["busybox-static"]) == apt.HOSTS
    assert list(tmp_path.iterdir()) == []


def test_otherwise_lists_are_fetched_once_a_day(programs: Programs, tmp_path: Path) -> None:
    first = apt.options(tmp_path, ["busybox-static"])
    assert f"Dir::State={tmp_path}/apt/state" in first
    assert [command for command in programs.ran if "update" in command] == [["apt-get", "--quiet", "--error-on=any", *first, "update"]]
    assert apt.options(tmp_path, ["busybox-static"]) == first
    assert sum("update" in command for command in programs.ran) == 1


def test_old_lists_are_better_than_none(programs: Programs, tmp_path: Path) -> None:
    programs.reaches = False
    with pytest.raises(BuildError):
        apt.options(tmp_path, ["busybox-static"])
    programs.reaches = True
    first = apt.options(tmp_path, ["busybox-static"])
    programs.reaches = False
    os.utime(tmp_path / "apt" / "updated", (0, 0))
    assert apt.options(tmp_path, ["busybox-static"]) == first


@pytest.mark.parametrize(
    ("text", "is_debian"), [(DEBIAN, True), (UBUNTU, False), (DEBIAN.replace("bookworm", "trixie"), False), ("", False)]
)
def test_other_releases_ask_the_archive_of_the_guests_own(text: str, is_debian: bool, tmp_path: Path) -> None:
    assert apt._is_release(text) is is_debian
    words = apt.own_options(tmp_path, is_debian=is_debian)
    assert (f"Dir::Etc::SourceList={tmp_path}/sources.list" in words) is not is_debian
