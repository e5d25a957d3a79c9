"""`paddock run --mount` with real guests: directories of the host, read and written by the guest, and never deleted."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddock.base.images.build import tiny
from tests.host.commands.conftest import served
from tests.host.commands.isolated import IsolatedHost
from tests.host.conftest import wait_until

pytestmark = pytest.mark.needs("qemu", "root", "netns", "tun", "nft", "virtiofsd")
# Nobody has this number.
OWNER = 61_235


@pytest.fixture
def data(work: Path) -> Path:
    """A user's directories."""
    work.chmod(0o755)
    place = work / "data"
    for name in ("src", "docs"):
        (place / name).mkdir(parents=True)
        (place / name / "precious").write_text(f"{name}\n")
    for path in (place, *place.rglob("*")):
        os.chown(path, OWNER, OWNER)
    return place


@pytest.fixture
def sharing(work: Path, netns: str, tiny_guest: tiny.TinyImage, data: Path) -> Iterator[IsolatedHost]:
    """A host whose server shares these directories."""
    with served(work, netns, "--share", str(data)) as found:
        yield found


def within(host: IsolatedHost, command: str) -> tuple[int, str]:
    """Run a shell command in the guest."""
    code, out, err = host.call("exec", "web", "--", "sh", "-c", command)
    return code, out + err


def good(host: IsolatedHost, command: str) -> str:
    code, out = within(host, command)
    assert code == 0, out
    return out


@pytest.mark.spec("kubevirt", 132, 133, 134)
def test_directories_of_the_host(sharing: IsolatedHost, data: Path) -> None:
    source, documents = data / "src", data / "docs"
    (source / "outside").symlink_to("/etc/hostname")
    os.mkfifo(data / "secret")
    out = sharing.good("run", "tiny", "-n", "web", "--mount", f"{source}:/src", "--mount", f"{documents}:/docs:ro")
    assert f"{source} of this host" in out and f"{documents} of this host, read-only" in out
    # The guest reads, and what it writes belongs to the owner of the directory, whoever writes it there.
    assert good(sharing, "cat /src/precious /docs/precious") == "src\ndocs\n"
    good(sharing, "echo root >/src/by-root && mkdir /src/deep && echo more >/src/deep/file")
    good(sharing, "su tiny -s /bin/sh -c 'echo tiny >/src/by-tiny && rm /src/deep/file && echo new >>/src/precious'")
    assert (source / "by-root").read_text() == "root\n" and (source / "precious").read_text() == "src\nnew\n"
    for name in ("by-root", "by-tiny", "deep"):
        status = (source / name).stat()
        assert (status.st_uid, status.st_gid) == (OWNER, OWNER), name
    assert good(sharing, "stat -c %u:%g /src/precious /src/by-root") == "1000:1000\n" * 2
    # What the owner makes on the host is there at once.
    (source / "late").write_text("late\n")
    assert good(sharing, "cat /src/late") == "late\n"
    # A directory that is only read, set-user-ID files, devices and other users' files are refused.
    for command, text in (
        ("echo no >/docs/new", "Read-only"),
        ("mount -o remount,rw /docs; echo no >/docs/new", "Read-only"),
        ("chmod u+s /src/by-root", "not permitted"),
        ("mknod /src/device c 1 3", "not permitted"),
        ("chown 5 /src/by-root", "Invalid argument"),
        # A link leads somewhere in the guest, not on the host.
        (f"test \"$(cat /src/outside)\" = '{Path('/etc/hostname').read_text().strip()}' || cat /src/../secret", "No such file"),
    ):
        code, said = within(sharing, command)
        assert code != 0 and text in said, (command, said)
    assert not (documents / "new").exists() and (source / "by-root").stat().st_mode & 0o7777 == 0o644
    # People see it, and what cannot be done with it says so.
    assert f"share-1: {source}" in sharing.good("info", "web") and "default.web-share-1" in sharing.good("tree", "web")
    sharing.good("snap", "web")
    code, _, err = sharing.call("suspend", "web")
    assert code != 0 and "shar" in err, err
    # The share outlives the server.
    sharing.good("down")
    good_options = ("up", "--detach", "--listen", "127.0.0.1:0", "--share", str(data))
    sharing.good(*good_options)
    assert good(sharing, "cat /src/late && echo after >/src/after") == "late\n" and (source / "after").read_text() == "after\n"
    # Everything that was made goes, and every file stays.
    before = {str(each): each.lstat().st_uid for each in data.rglob("*")}
    told = sharing.call("rm", "web", "--purge", "--yes")
    assert told[0] == 0 and f"stays: directory {source} of the host with all its files" in told[2], told
    wait_until("its objects are gone", lambda: [sharing.good("get", kind, "-o", "name") for kind in ("pv", "pvc")] == ["", ""], 60)
    wait_until("QEMU is gone", lambda: sharing.machines == [], 60)
    assert {str(each): each.lstat().st_uid for each in data.rglob("*")} == before
    assert (documents / "precious").read_text() == "docs\n" and (source / "precious").read_text() == "src\nnew\n"


@pytest.mark.spec("kubevirt", 134)
def test_what_the_server_does_not_share(sharing: IsolatedHost, work: Path, data: Path) -> None:
    other = work / "other"
    other.mkdir()
    code, out, err = sharing.call("run", "tiny", "-n", "web", "--mount", f"{other}:/src")
    assert (code, out) == (1, "") and f"paddock up --share {other}" in err, err
    assert sharing.machines == []
    sharing.good("rm", "web", "--purge", "--yes")
    code, _, err = sharing.call("run", "tiny", "-n", "none", "--mount", f"{data}/none:/src")
    assert code == 2 and "there is no such directory" in err
    assert sharing.good("ls", "-o", "name") == "" and sharing.good("get", "pv", "-o", "name").count("none") == 0
    # The server's own directory is none that a guest may have, although nothing else was asked of the option.
    code, _, err = sharing.call("run", "tiny", "-n", "own", "--mount", f"{sharing.place}:/own")
    assert code == 1 and "keeps its own data" in err, err
