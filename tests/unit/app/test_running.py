"""The output of `paddock run`, and the wishes of its command line, without a server."""

import argparse
import asyncio
import io
from pathlib import Path
from typing import cast

import pytest

from paddock.app.commands import run as command
from paddock.app.running import localimages, machines, wishes
from paddock.app.running.localimages import LocalImages
from paddock.base.errors import Terminal, UsageError
from paddock.cli import main
from paddock.cli.console import Console
from paddock.cli.progress import ProgressBar, ProgressOutput
from paddock.fleet.creation.imagewords import ImageWord
from paddock.fleet.creation.readiness import RunStage
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import BadAccess
from tests.coroutines import run_by

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGqG6cvGr3rZkEHCFVqfgCTg8Lk1R0Tr2yHxWQ0mBb8q me@here\n"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user with a key."""
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_ed25519.pub").write_text(KEY)
    for name in ("XDG_CACHE_HOME", "KUBECONFIG", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PADDOCK_DIR", str(tmp_path / "none"))
    return tmp_path


def parsed(*words: str) -> argparse.Namespace:
    return command.parser().parse_args(words)


def test_the_defaults_of_tiny() -> None:
    plan = wishes.offline(parsed("tiny"))
    (one,) = plan.machines
    assert (one.name, one.memory, one.disk, one.cpus, one.dialect, one.namespace) == ("tiny-1", "192Mi", "1Gi", 1, "kubevirt", "default")
    assert one.address == "https://images.paddock.internal/tiny" and "ssh-ed25519" in one.user_data


def test_what_the_options_say() -> None:
    words = ("debian-12", "-n", "web", "-c", "2", "-m", "2Gi", "-d", "20Gi", "-p", "8080:80", "--count", "2", "--namespace", "lab")
    first, second = wishes.offline(parsed(*words)).machines
    assert (first.name, second.name, first.namespace) == ("web-1", "web-2", "lab")
    assert (first.cpus, first.memory, first.disk, first.ports[0].guest) == (2, "2Gi", "20Gi", 80)
    assert first.address.startswith("https://cloud.debian.org/")


def test_user_data_of_ones_own_replaces_the_key(home: Path) -> None:
    (home / "mine").write_text("#cloud-config\npackages: [vim]\n")
    (one,) = wishes.offline(parsed("tiny", "--user-data", str(home / "mine"))).machines
    assert one.user_data == "#cloud-config\npackages: [vim]\n"
    with pytest.raises(Terminal, match="exclude"):
        wishes.offline(parsed("tiny", "--user-data", str(home / "mine"), "-k", str(home / ".ssh" / "id_ed25519.pub")))


def test_without_a_key_the_user_is_told(home: Path) -> None:
    (home / ".ssh" / "id_ed25519.pub").unlink()
    plan = wishes.offline(parsed("fedora"))
    assert plan.machines[0].user_data == "" and "no SSH key" in plan.remarks[0]


def test_a_file_has_a_name_that_changes_with_it(home: Path) -> None:
    images, file = LocalImages(None), home / "My Disk.qcow2"
    file.write_bytes(b"1")
    first = images.name_of(ImageWord("file", str(file)))
    file.write_bytes(b"22")
    assert first.startswith("my-disk-") and images.name_of(ImageWord("file", str(file))) != first


def test_an_image_that_was_built_here_comes_before_the_catalogue(home: Path) -> None:
    built = home / ".cache" / "paddock" / "guests" / "debian-12-0123"
    assert LocalImages(None).names() == ["tiny"]
    built.mkdir(parents=True)
    (built / "debian-12.qcow2").touch()
    assert LocalImages(None).names() == ["tiny", "debian-12"]


@pytest.mark.parametrize(("size", "text"), [(0, "10Gi"), (1, "1Gi"), (1 << 30, "1Gi"), ((3 << 30) + 1, "4Gi")])
def test_sizes_of_disks(size: int, text: str) -> None:
    assert localimages.disk_size(size) == text


@pytest.mark.parametrize(
    "words",
    [
        ("tiny", "--count", "0"),
        ("tiny", "-c", "0"),
        ("tiny", "--count", "2", "-p", "80"),
        ("tiny", "--count", "2", "--rm"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_made(words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        command.run(words, Console(io.BytesIO(), io.BytesIO()))


def test_without_a_server_the_way_to_one_is_named(home: Path) -> None:
    with pytest.raises(BadAccess) as caught:
        command.run(["tiny", "--kubeconfig", str(home / "none")], Console(io.BytesIO(), io.BytesIO()))
    assert "none" in str(caught.value)


def test_the_manifests_of_a_dry_run_need_no_server() -> None:
    out, err = io.BytesIO(), io.BytesIO()
    code = main.run(["run", "tiny", "--dry-run"], Console(out, err), {"run": ("paddock.app.commands.run", "")}, {"x": ("run",)})
    assert code == 0 and b"kind: VirtualMachine" in out.getvalue() and b"on this host" in err.getvalue()


def test_several_machines_share_one_line_in_a_pipe() -> None:
    lines: list[str] = []
    now = iter(range(0, 10_000, 2))
    bar = ProgressBar(Console(io.BytesIO(), io.BytesIO()), out=ProgressOutput(lines.append, lambda: 0), now=lambda: next(now))
    shown = wishes._Shown(bar, 2)
    for _ in range(4):
        for name in ("web-1", "web-2"):
            shown.of(name)(RunStage("booting", "the guest boots"))
            bar.draw()
    shown.of("web-1")(RunStage("usable", "usable"))
    bar.draw()
    assert lines[-1].startswith("paddock: 1 of 2 machines are usable")
    assert len(lines) <= 3


class SlowClient:
    """A client whose creations are on their way until they are let through."""

    def __init__(self) -> None:
        self.sent, self.goes_on = asyncio.Event(), asyncio.Event()

    async def create(self, *_: object) -> None:
        self.sent.set()
        await self.goes_on.wait()


@run_by(asyncio.run)
async def test_a_creation_that_is_interrupted_is_known() -> None:
    machine = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "web", "namespace": "default"}}
    client, made = SlowClient(), list[machines.CreatedObject]()
    creating = asyncio.create_task(machines.create(cast(Client, client), [machine, machine], made))
    await client.sent.wait()
    creating.cancel()
    await asyncio.sleep(0)
    client.goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await creating
    assert [each.key.name for each in made] == ["web"]


def test_a_mount_is_a_directory_of_this_host(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "work" / "src").mkdir(parents=True)
    (home / "link").symlink_to("work/src")
    (home / "file").touch()
    monkeypatch.chdir(home / "work")
    plan = wishes.offline(parsed("tiny", "--mount", "./src:/src", "--mount", "~/link:/link:ro"))
    (one,) = plan.machines
    real = str((home / "work" / "src").resolve())
    assert [(each.host, each.guest, each.readonly) for each in one.mounts] == [(real, "/src", False), (real, "/link", True)]
    assert "virtiofs" in one.user_data
    for given, why in (("none:/x", "there is no such directory"), ("~/file:/x", "it is no directory")):
        with pytest.raises(Terminal) as caught:
            wishes.offline(parsed("tiny", "--mount", given))
        assert why in str(caught.value)


def test_user_data_of_ones_own_has_to_mount(home: Path) -> None:
    (home / "mine").write_text("#cloud-config\n")
    plan = wishes.offline(parsed("tiny", "--user-data", str(home / "mine"), "--mount", f"{home}:/src"))
    assert any("mount -t virtiofs share-1 /src" in each for each in plan.remarks)
