"""Mirrors of web servers: what is asked in place of a URL, and what the mirror does not get."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from paddock.app.options import machines
from paddock.app.options.settings import MachineSettings
from paddock.base.errors import Terminal
from paddock.base.images.errors import ImageError
from paddock.base.images.library import Image, ImageLibrary, ImageSettings
from paddock.base.images.sources import Http, mirrored
from paddock.cli.arguments import Parser
from tests.kit.servers.imageserver import Server
from tests.unit.base.images.conftest import disk

ORIGIN = "https://images.example"
MIRRORS = {
    ORIGIN: "http://mirror/all",
    f"{ORIGIN}/ubuntu/": "http://mirror/ubuntu/",
    "http://plain.example:8080/a.img": "https://one/b.img",
}


def fetched(root: Path, settings: ImageSettings, source: Http) -> Image:
    async def run() -> Image:
        images = ImageLibrary(root, settings)
        try:
            return await images.fetch(source)
        finally:
            await images.close()

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("url", "found"),
    [
        (f"{ORIGIN}/fedora/f.img", "http://mirror/all/fedora/f.img"),
        (f"{ORIGIN}/ubuntu/u.img?version=1", "http://mirror/ubuntu/u.img?version=1"),
        ("https://IMAGES.example:443/ubuntu/u.img", "http://mirror/ubuntu/u.img"),
        ("https://somebody:secret@images.example/f.img", "http://mirror/all/f.img"),
        (f"{ORIGIN}/ubuntuish/u.img", "http://mirror/all/ubuntuish/u.img"),
        (f"{ORIGIN}.org/f.img", ""),
        ("http://images.example/f.img", ""),
        ("http://plain.example:8080/a.img", "https://one/b.img"),
        ("http://plain.example/a.img", ""),
    ],
)
def test_the_longest_beginning_counts(url: str, found: str) -> None:
    assert mirrored(url, MIRRORS) == found


def test_a_mirror_is_asked_and_gets_no_credentials(server: Server, root: Path, settings: ImageSettings) -> None:
    body = disk()
    place = server.put("/ubuntu/u.img", body).removesuffix("/u.img")
    mirrors = msgspec.structs.replace(settings, url_mirrors={f"{ORIGIN}/jammy": place})
    source = Http(f"{ORIGIN}/jammy/u.img", username="u", password="p", secret_headers=(("X-Token", "t"),), headers=(("X-Plain", "yes"),))
    assert fetched(root, mirrors, source).path.read_bytes() == body
    (seen,) = server.seen
    assert seen.path == "/ubuntu/u.img" and seen.headers["x-plain"] == "yes"
    assert not {"authorization", "x-token"} & set(seen.headers)


def test_a_mirror_without_the_file_is_named(server: Server, root: Path, settings: ImageSettings) -> None:
    place = server.put("/other", b"").removesuffix("/other")
    with pytest.raises(ImageError) as caught:
        fetched(root, msgspec.structs.replace(settings, url_mirrors={ORIGIN: place}, attempts=1), Http(f"{ORIGIN}/u.img"))
    assert f"{place}/u.img" in str(caught.value)


def read(*words: str) -> MachineSettings:
    parser = Parser(prog="up")
    machines.add(parser)
    return machines.read(parser.parse_args(words))


def test_the_option() -> None:
    found: Mapping[str, str] = read(f"--image-mirror={ORIGIN}=http://mirror/?key=1", "--image-mirror=http://b=http://c").url_mirrors
    assert found == {ORIGIN: "http://mirror/?key=1", "http://b": "http://c"}


@pytest.mark.parametrize("word", ["docker.io=http://mirror", f"{ORIGIN}=mirror:5000", ORIGIN])
def test_an_option_that_is_no_pair_of_urls(word: str) -> None:
    with pytest.raises(Terminal, match=r"write|needs"):
        read(f"--image-mirror={word}")
