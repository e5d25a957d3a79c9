"""Images without Debian: what belongs in one, which layer, which libraries, and that the same files give the same bytes."""

import json
import os
import struct
import tarfile
from pathlib import Path

import pytest

from paddock.base.images.build.packages import Package, PackageMember
from paddock.base.images.build.programs import BuildError
from paddock.base.images.registry import OciArchive
from tools.container import build, debian, elf, oci, recipes
from tools.container.debian import DebianPackage

FACTS = oci.ImageFacts("1.2.3", "a" * 40, 1_700_000_000, "amd64")
SITE = f"usr/lib/paddock/lib/python{recipes.PYTHON}/site-packages"


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ("lib/x86_64-linux-gnu/libc.so.6", "usr/lib/x86_64-linux-gnu/libc.so.6"),
        ("bin/ls", "usr/bin/ls"),
        ("sbin/ip", "usr/sbin/ip"),
        ("usr/bin/ls", "usr/bin/ls"),
        ("etc/passwd", "etc/passwd"),
        ("library/x", "library/x"),
    ],
)
def test_places(path: str, where: str) -> None:
    assert recipes.place(path) == where


@pytest.mark.parametrize(
    ("path", "left_out"),
    [
        ("usr/share/doc/libc6/copyright", False),
        ("usr/share/doc/libc6/changelog.Debian.gz", True),
        ("usr/share/doc/libc6/NEWS.gz", True),
        ("usr/share/man/man1/python3.1.gz", True),
        (f"usr/lib/python{recipes.PYTHON}/asyncio/__init__.py", False),
        (f"usr/lib/python{recipes.PYTHON}/idlelib/pyshell.py", True),
        (f"usr/lib/python{recipes.PYTHON}/lib-dynload/_curses.cpython-311-x86_64-linux-gnu.so", True),
        (f"usr/lib/python{recipes.PYTHON}/lib-dynload/_ssl.cpython-311-x86_64-linux-gnu.so", False),
        (f"usr/bin/python{recipes.PYTHON}", False),
    ],
)
def test_what_is_left_out(path: str, *, left_out: bool) -> None:
    assert recipes.is_left_out(path) == left_out


@pytest.mark.parametrize(
    ("path", "layer"),
    [
        ("usr/bin/python3.11", 0),
        ("usr/lib/paddock/bin/python3", 1),
        (f"{SITE}/orjson/__init__.py", 1),
        (f"{SITE}/paddock/app/main.py", 2),
        (f"{SITE}/paddock-1.2.3.dist-info/RECORD", 2),
        ("usr/bin/paddock", 2),
    ],
)
def test_what_changes_least_comes_first(path: str, layer: int) -> None:
    assert recipes.layer_of(path) == layer


def library(*names: str) -> bytes:
    """A 64-bit ELF file with a dynamic section that needs these libraries, at address 0x1000."""
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in names)
    offsets = [strings.index(b"\0" + name.encode() + b"\0") + 1 for name in names]
    headers, start = 64 + 2 * 56, 64 + 2 * 56
    dynamic = b"".join(struct.pack("<qQ", 1, place) for place in offsets)
    table = start + len(dynamic) + 32
    dynamic += struct.pack("<qQqQ", 5, 0x1000 + table, 0, 0)
    whole = table + len(strings)
    header = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    segments = struct.pack("<IIQQQQQQ", 1, 4, 0, 0x1000, 0x1000, whole, whole, 8)
    segments += struct.pack("<IIQQQQQQ", 2, 4, headers, 0x1000 + headers, 0, len(dynamic), len(dynamic), 8)
    return header + segments + dynamic + strings


def test_libraries_that_a_file_needs() -> None:
    assert elf.needed(library("libc.so.6", "libz.so.1")) == ("libc.so.6", "libz.so.1")
    assert elf.needed(b"#!/bin/sh\n") == ()
    assert elf.needed(b"\x7fELF\x01" + bytes(100)) == ()


def package(name: str, brings: str, *needs: str) -> DebianPackage:
    return DebianPackage(
        Package(f"{name}_1_amd64.deb", 1, "0" * 64),
        f"Package: {name}\nVersion: 1:2+b1\n",
        {f"usr/lib/{brings}": PackageMember(0o644, library(*needs))},
    )


def test_libraries_are_taken_by_need(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {
        each.name: each
        for each in (
            package("program", "program", "liba.so.1"),
            package("a", "liba.so.1", "libb.so.1"),
            package("b", "libb.so.1"),
            package("c", "libc++.so.1"),
            package("debconf", "nothing"),
        )
    }
    monkeypatch.setattr(debian, "read", lambda name, path: known[name])
    paths = {name: Path(name) for name in known}
    assert [each.name for each in debian.select(["program"], paths, {})] == ["a", "b", "program"]
    # A wheel brings libraries, too, and needs some.
    wheels = {"x/liba.so.1": library("libc++.so.1")}
    assert [each.name for each in debian.select(["b"], paths, wheels)] == ["b", "c"]
    with pytest.raises(BuildError, match=r"no package brings libmissing\.so"):
        debian.select(["b"], paths, {"x": library("libmissing.so")})


def root(folder: Path, names: list[str], when: int) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
        path.chmod(0o755 if "bin" in name else 0o640)
        os.utime(path, (when, when))
    (folder / "link").symlink_to("b/file")
    (folder / "tmp").mkdir(mode=0o700)
    return folder


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    names, digests = ["bin/paddock", "b/file", "a"], []
    for number, order in enumerate((names, names[::-1])):
        made = root(tmp_path / str(number), order, 1000 + number)
        listed = [path.relative_to(made).as_posix() for path in made.rglob("*")]
        layer = oci.layer(made, listed if number else listed[::-1], tmp_path / f"layer-{number}", FACTS.created)
        digests.append((layer, oci.archive(recipes.OPERATOR, FACTS, [layer], tmp_path / f"{number}.tar")))
    assert digests[0][1] == digests[1][1]
    assert (tmp_path / "0.tar").read_bytes() == (tmp_path / "1.tar").read_bytes()
    with tarfile.open(tmp_path / "layer-0", "r:gz") as layer_file:
        modes = {info.name: (info.mode, info.uid, info.mtime) for info in layer_file}
    assert modes["bin/paddock"] == (0o755, 0, FACTS.created)
    assert (modes["a"][0], modes["tmp"][0]) == (0o644, 0o1777)


@pytest.mark.parametrize(
    ("recipe", "starts"),
    [
        (recipes.OPERATOR, (["/usr/bin/paddock"], ["operator"])),
        (recipes.HOST, (["/usr/bin/paddock"], ["up"])),
        # The Pod of a Provider gives options, and they take the place of the command.
        (recipes.PROVIDER, (["/usr/bin/paddock", "provider", "serve"], [])),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_what_an_image_starts(recipe: recipes.ContainerRecipe, starts: tuple[list[str], list[str]]) -> None:
    config = oci.configuration(recipe, FACTS, [])["config"]
    assert (config["Entrypoint"], config["Cmd"]) == starts


def test_the_archive_is_one_that_registries_know(tmp_path: Path) -> None:
    made = root(tmp_path / "root", ["a"], 1)
    layer = oci.layer(made, ["a"], tmp_path / "layer", FACTS.created)
    digest = oci.archive(recipes.OPERATOR, FACTS, [layer], tmp_path / "image.tar")
    raw, found = OciArchive(tmp_path / "image.tar").manifest("1.2.3")
    stated = json.loads(raw)
    assert (found, stated["layers"][0]["digest"]) == (digest, layer.digest)
    OciArchive(tmp_path / "image.tar").blob(stated["config"]["digest"], tmp_path / "config")
    config = json.loads((tmp_path / "config").read_text())
    assert config["rootfs"]["diff_ids"] == [layer.content]
    assert config["created"] == "2023-11-14T22:13:20Z"
    assert config["config"]["Labels"]["org.opencontainers.image.revision"] == FACTS.commit


def test_the_bill_of_an_image() -> None:
    found = build.contents(recipes.OPERATOR, FACTS, [package("libc6", "libc.so.6")])
    purls = [each["purl"] for each in found["components"]]
    assert purls[0] == "pkg:pypi/paddock@1.2.3"
    assert purls[-1] == "pkg:deb/debian/libc6@1%3A2%2Bb1?arch=&distro=debian-12"
    assert not [each for each in purls if "zstd" in each or "setuptools" in each]
    assert found["metadata"]["component"]["purl"] == "pkg:oci/paddock-operator@1.2.3?arch=amd64"
    assert {each["bom-ref"] for each in found["components"]} == set(found["dependencies"][0]["dependsOn"])


def test_a_host_without_apt_learns_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("shutil.which", lambda name, path=None: None)
    with pytest.raises(BuildError) as caught:
        build.build(recipes.OPERATOR, tmp_path)
    assert "apt-get install apt dpkg" in str(caught.value)
