"""Images that would read the host: refused, and the file they name is never opened, by nobody. The plain tool would open it."""

import gzip
import os
import struct
import subprocess
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddock.base.images.convert import ConversionLimits, Tool, convert_limits
from paddock.base.images.errors import ImageError
from paddock.base.images.facts import ImageFacts
from paddock.base.images.progress import Meter
from paddock.base.images.sources import File, Http, RegistryImage
from paddock.base.images.stopflag import StopFlag
from tests.host.images.conftest import Fetch, opened
from tests.kit.engine.diskimages import CLUSTER, DATA_FILE, LUKS, qcow2, vdi, vhdx, vmdk, vmdk_descriptor, vpc
from tests.kit.servers import imageserver
from tests.kit.servers.imageserver import Server, layer, running, special

pytestmark = pytest.mark.needs("qemu")


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "shadow"
    path.write_bytes(b"root:geheim" + bytes(1 << 20))
    path.chmod(0o644)
    return path


def unnamed(image: bytes) -> bytes:
    """Return a VMDK whose header says that it has no descriptor. QEMU looks for a parent where one would be."""
    return image[:28] + bytes(16) + image[44:]


def hostile(secret: Path) -> dict[str, tuple[bytes, str]]:
    name = str(secret).encode()
    flat = f'RW 2048 FLAT "{secret}" 0'
    json = b'json:{"driver":"raw","file":{"driver":"file","filename":"%s"}}' % name
    return {
        "a backing file": (qcow2(backing=name), "Unsafe"),
        "a backing file in version 2": (qcow2(backing=name, version=2), "Unsafe"),
        "a backing file in JSON": (qcow2(backing=json), "Unsafe"),
        "a backing file over a network": (qcow2(backing=b"nbd://127.0.0.1:9/x"), "Unsafe"),
        "a data file": (qcow2(incompatible=4, extensions=[(DATA_FILE, name)]), "Unsafe"),
        "a data file in JSON": (qcow2(incompatible=4, extensions=[(DATA_FILE, json)]), "Unsafe"),
        "a data file's name alone": (qcow2(extensions=[(DATA_FILE, name)]), "Unsafe"),
        "a flat extent": (vmdk_descriptor("monolithicFlat", flat).encode(), "Unsupported"),
        "a flat extent in a sparse file": (vmdk(vmdk_descriptor(extent=flat)), "Unsafe"),
        "a sparse file that is a descriptor": (vmdk(vmdk_descriptor("monolithicFlat", flat), capacity=0), "NotAnImage"),
        "a parent of a vmdk": (vmdk(vmdk_descriptor(parent="12345678", more=f'parentFileNameHint="{secret}"\n')), "Unsafe"),
        "a parent in a descriptor that no header names": (
            unnamed(vmdk(vmdk_descriptor(more=f'parentFileNameHint="{secret}"\n'))),
            "Unsafe",
        ),
        "a vdi's parent": (vdi(parent=b"p" * 16), "Unsafe"),
        "a vhd's parent": (vpc(kind=4, parent=b"p" * 16), "Unsafe"),
        "a vhdx's parent": (vhdx(flags=2), "Unsafe"),
        "encrypted": (qcow2(crypt=1), "Encrypted"),
        "encrypted with LUKS": (qcow2(crypt=2, extensions=[(LUKS, bytes(16))]), "Encrypted"),
        "LUKS": (b"LUKS\xba\xbe" + bytes(4096), "Encrypted"),
        "an exabyte": (qcow2(size=1 << 60), "TooLarge"),
        "an exabyte in a vdi": (vdi(size=1 << 60), "TooLarge"),
        "an exabyte in a vhd": (vpc(size=1 << 60), "TooLarge"),
        "an exabyte in a vhdx": (vhdx(size=1 << 60), "TooLarge"),
    }


NAMES = sorted(hostile(Path("/x")))


@pytest.mark.spec("kubevirt", 66)
@pytest.mark.parametrize("name", NAMES)
def test_the_file_that_is_named_is_never_opened(name: str, secret: Path, fetch: Fetch, server: Server, tmp_path: Path) -> None:
    data, code = hostile(secret)[name]
    (tmp_path / "local").write_bytes(data)
    with opened(secret) as count:
        for source in (Http(server.put("/disk", data)), Http(server.put("/disk.gz", gzip.compress(data))), File(tmp_path / "local")):
            with pytest.raises(ImageError) as caught:
                fetch(source)
            assert (caught.value.code, caught.value.fatal) == (code, True)
        assert count() == 0
    assert not list((tmp_path / "images" / "sha256").iterdir())
    assert not list((tmp_path / "images" / "work").iterdir())


@pytest.mark.spec("kubevirt", 66)
@pytest.mark.parametrize("name", ["a backing file", "a data file", "a flat extent"])
def test_the_plain_tool_would_open_it(name: str, secret: Path, tmp_path: Path) -> None:
    """The leak that the test above looks for happens with the plain tool."""
    (tmp_path / "disk").write_bytes(hostile(secret)[name][0])
    kind = "vmdk" if "extent" in name else "qcow2"
    with opened(secret) as count:
        subprocess.run(
            ["qemu-img", "convert", "-f", kind, "-O", "raw", tmp_path / "disk", tmp_path / "out"], check=False, capture_output=True
        )
        assert count() > 0


@pytest.mark.spec("kubevirt", 66)
@pytest.mark.parametrize("name", ["a backing file", "a data file", "a flat extent"])
def test_also_where_our_own_reading_would_have_missed_it(name: str, secret: Path, tmp_path: Path) -> None:
    """The second wall: qemu-img is confined, and told to open the image as if it had passed."""
    (tmp_path / "disk").write_bytes(hostile(secret)[name][0])
    facts = ImageFacts("vmdk" if "extent" in name else "qcow2", 1 << 20)
    with opened(secret) as count:
        with pytest.raises(ImageError):
            Tool().check(tmp_path / "disk", facts, ConversionLimits(), StopFlag())
        with pytest.raises(ImageError):
            Tool().to_raw(tmp_path / "disk", facts, tmp_path / "out", (Meter(lambda _: None), StopFlag()))
        assert count() == 0


@pytest.mark.spec("kubevirt", 66)
@pytest.mark.parametrize(
    "files",
    [
        {"disk/../../../etc/cron.d/x": b"x"},
        {"/etc/cron.d/x": b"x"},
        {"disk/a": special(tarfile.BLKTYPE)},
        {"disk/a": special(tarfile.CHRTYPE)},
        {"disk/a": special(tarfile.SYMTYPE, "/etc/shadow")},
        {"disk/a": special(tarfile.LNKTYPE, "../../etc/shadow")},
        {"disk/a": bytes(512), "disk/b": bytes(512)},
        {"disk/a": qcow2(backing=b"/etc/shadow")},
    ],
    ids=["traversal", "absolute", "block", "character", "symlink", "hardlink", "two", "backing"],
)
def test_container_images(files: dict[str, bytes | tarfile.TarInfo], tmp_path: Path, fetch: Fetch) -> None:
    with running(imageserver.Registry()) as registry:
        registry.image("disks/x", "1", layer(files))
        with pytest.raises(ImageError) as caught:
            # The registry speaks plain HTTP, which the settings of `fetch` do not allow: a mirror may.
            fetch_with(tmp_path, registry)
        assert caught.value.fatal
    assert not list((tmp_path / "images" / "sha256").iterdir())


def fetch_with(tmp_path: Path, registry: imageserver.Registry) -> None:
    import asyncio  # noqa: PLC0415 - this one function

    from paddock.base.images.library import ImageLibrary, ImageSettings  # noqa: PLC0415 - this one function

    settings = ImageSettings(allow=("127.0.0.1",), proxies={}, insecure_registries=frozenset({registry.host}))
    asyncio.run(ImageLibrary(tmp_path / "images", settings).fetch(RegistryImage(f"docker://{registry.host}/disks/x:1")))


@pytest.mark.spec("kubevirt", 66)
def test_a_bomb(fetch: Fetch, server: Server, tmp_path: Path) -> None:
    bomb = gzip.compress(bytes(256 << 20), 9)
    assert len(bomb) < 300_000
    with pytest.raises(ImageError) as caught:
        fetch(Http(server.put("/disk.gz", bomb)), limit=32 << 20)
    assert (caught.value.code, caught.value.fatal) == ("TooLarge", True)
    assert not list((tmp_path / "images" / "work").iterdir())


# --- limits -----------------------------------------------------------------------------------------------------------------------


SPINNING = 4 << 30


def spinning() -> bytes:
    """Tables of sixty-four thousand clusters that are all the same compressed one, in a disk that was not closed: it is converted."""
    data = bytearray(qcow2(size=SPINNING, incompatible=1))
    packer = zlib.compressobj(9, zlib.DEFLATED, -12)
    packed = packer.compress(bytes(range(1, 256)) * 257 + b"\1") + packer.flush()
    data[5 * CLUSTER : 5 * CLUSTER + len(packed)] = packed
    entry = (1 << 62) | (((len(packed) + 511) // 512 - 1) << 54) | 5 * CLUSTER
    struct.pack_into(">8Q", data, 3 * CLUSTER, *[(1 << 63) | (6 + number) * CLUSTER for number in range(8)])
    return bytes(data) + struct.pack(">8192Q", *[entry] * 8192) * 8


@pytest.mark.spec("kubevirt", 67)
def test_a_header_that_spins_is_killed_and_reported(tmp_path: Path) -> None:
    (tmp_path / "disk").write_bytes(spinning())
    facts = ImageFacts("qcow2", SPINNING)
    tool = Tool()
    assert tool.check(tmp_path / "disk", facts, ConversionLimits(), StopFlag()).virtual_size == SPINNING
    # The same work with the limits of a second, so that the test takes no longer.
    for number, (limits, text) in enumerate(
        [
            (ConversionLimits(cpu_seconds=1, file_bytes=1 << 40), "more than 1 s of CPU time"),
            (ConversionLimits(wall_seconds=0.3, file_bytes=1 << 40), "longer than 0 s"),
            (ConversionLimits(file_bytes=1 << 20), "wrote more than"),
            (ConversionLimits(memory_bytes=64 << 20, file_bytes=1 << 40), "qemu-img"),
        ]
    ):
        with pytest.raises(ImageError) as caught:
            tool.to_raw(tmp_path / "disk", facts, tmp_path / f"out{number}", (Meter(lambda _: None), StopFlag()), limits)
        assert caught.value.fatal
        assert text in str(caught.value)


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A directory that every user may enter."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def instead(folder: Path, text: str) -> Path:
    """A program in qemu-img's place."""
    (folder / "bin").mkdir()
    program = folder / "bin" / "qemu-img"
    program.write_text(text)
    program.chmod(0o755)
    return program


@pytest.mark.spec("kubevirt", 67)
@pytest.mark.parametrize(
    ("limits", "text"), [(ConversionLimits(cpu_seconds=1), "1 s of CPU time"), (ConversionLimits(wall_seconds=0.5), "longer than")]
)
def test_a_look_that_never_ends_is_ended(limits: ConversionLimits, text: str, tmp_path: Path, reachable: Path) -> None:
    program = instead(reachable, "#!/bin/sh\nwhile :; do :; done\n")
    (tmp_path / "disk").write_bytes(qcow2())
    with pytest.raises(ImageError, match=text) as caught:
        Tool(program=str(program)).check(tmp_path / "disk", ImageFacts("qcow2", 1 << 20), limits, StopFlag())
    assert (caught.value.code, caught.value.fatal) == ("Limits", True)


@pytest.mark.spec("kubevirt", 67)
def test_the_limits_that_are_used() -> None:
    assert (
        ConversionLimits().memory_bytes,
        ConversionLimits().cpu_seconds,
        ConversionLimits().wall_seconds,
        ConversionLimits().file_bytes,
    ) == (1 << 30, 30, 30.0, 0)
    small, large = convert_limits(1 << 20, 1 << 30), convert_limits(1 << 30, 1 << 40)
    assert 30 < small.cpu_seconds < large.cpu_seconds < 3600
    assert small.file_bytes < (1 << 30) + (2 << 20)


PROBE = """#!/bin/sh
echo uid $(id -u) groups $(id -G)
cat SECRET 2>/dev/null && echo read the secret
cat /etc/passwd >/dev/null 2>&1 && echo read passwd
ls / >/dev/null 2>&1 && echo listed the root
echo x >/tmp/paddock-probe 2>/dev/null && echo wrote
grep -q eth0 /proc/net/dev 2>/dev/null && echo has a network
env | grep -c . | sed 's/^/env /'
ulimit -v | sed 's/^/memory /'
ulimit -t | sed 's/^/cpu /'
exit 0
"""


@pytest.mark.spec("kubevirt", 67)
@pytest.mark.needs("root")
def test_what_qemu_img_can_do(secret: Path, tmp_path: Path, reachable: Path) -> None:
    program = instead(reachable, PROBE.replace("SECRET", str(secret)))
    (tmp_path / "disk").write_bytes(qcow2())
    os.environ["A_SECRET_OF_OURS"] = "x"
    output = Tool(program=str(program))._run(["info"], (tmp_path / "disk", None), ConversionLimits(), (StopFlag(), None)).decode()
    del os.environ["A_SECRET_OF_OURS"]
    assert "uid 65534 groups 65534" in output
    for word in ("read", "listed", "wrote", "network"):
        assert word not in output
    assert f"memory {(1 << 30) // 1024}" in output
    assert "cpu 30" in output
    assert int(output.split("env ")[1].split()[0]) <= 4
