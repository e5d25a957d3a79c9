"""`paddock image`, as it is called."""

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from paddock.app.main import COMMANDS
from paddock.cli import main
from paddock.cli.console import Console
from tests.imageserver import Registry, Server, layer, running
from tests.unit.engine.images.conftest import disk

BODY = disk()
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def server() -> Iterator[Server]:
    with running(Server()) as one:
        yield one


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PADDOCK_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))

    def one(*words: str) -> tuple[int, str, str]:
        out, err = io.BytesIO(), io.BytesIO()
        code = main.run(["image", *words], Console(out, err), COMMANDS)
        return code, out.getvalue().decode(), err.getvalue().decode()

    return one


def test_pull_list_and_remove(call: Call, server: Server) -> None:
    url = server.put("/disk.raw", BODY)
    code, out, err = call("pull", url)
    assert code == 0
    digest = out.split()[0].removeprefix("sha256:")
    assert "downloading" in err
    _, listed, _ = call("ls")
    assert digest[:12] in listed
    assert url in listed
    (record,) = json.loads(call("ls", "-o", "json")[1])
    assert (record["format"], record["virtualSize"], record["used"]) == ("raw", len(BODY), False)
    assert Path(record["path"]).read_bytes() == BODY
    assert call("rm", digest[:8]) == (0, f"removed sha256:{digest}\n", "")
    assert json.loads(call("ls", "-o", "json")[1]) == []


def test_what_a_volume_or_machine_uses_stays(call: Call, server: Server, tmp_path: Path) -> None:
    digests = [call("pull", server.put(f"/{seed}", disk(seed=seed)))[1].split()[0].removeprefix("sha256:") for seed in range(4)]
    engine, pool = tmp_path / "state" / "engine", tmp_path / "pool"
    for path, digest in (
        (engine / "volumes" / "one" / "volume.json", digests[0]),
        (engine / "machines" / "two" / "config.json", digests[1]),
        (pool / "three" / "volume.json", digests[2]),
    ):
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"base": f"../../images/sha256/{digest}/disk.img"}))
    code, _, err = call("rm", digests[0], "--pool", str(pool))
    assert (code, "is used" in err) == (2, True)
    assert call("rm", "--unused", "--pool", str(pool))[1] == f"removed sha256:{digests[3]}\n"


def test_beside_a_server_what_is_fresh_stays(call: Call, server: Server, tmp_path: Path) -> None:
    call("pull", server.put("/disk", BODY))
    (tmp_path / "state" / "server.json").write_text("{}")
    assert call("rm", "--unused") == (0, "", "")


def test_push_and_pull_with_the_credentials_of_docker(call: Call, server: Server, tmp_path: Path) -> None:
    url = server.put("/disk", BODY)
    with running(Registry("basic")) as registry:
        reference = f"docker://{registry.host}/disks/mine:1"
        options = ("--insecure-registry", registry.host)
        digest = call("pull", url)[1].split()[0]
        code, _, err = call("push", digest, reference, *options)
        assert (code, "NotAuthorized" in err or "401" in err) == (2, True)
        (tmp_path / "docker").mkdir()
        auths = {"auths": {registry.host: {"username": registry.USER, "password": registry.PASSWORD}}}
        (tmp_path / "docker" / "config.json").write_text(json.dumps(auths))
        code, out, _ = call("push", url, reference, *options)
        assert (code, out.startswith(f"{reference}@sha256:")) == (0, True)
        assert call("rm", digest)[0] == 0
        assert call("pull", reference, *options)[1].split()[0] == digest


def test_a_file_in_a_container_image(call: Call) -> None:
    with running(Registry()) as registry:
        registry.image("x", "1", layer({"a/b.img": BODY}))
        code, out, _ = call("pull", f"docker://{registry.host}/x:1", "--path", "/a/b.img", "--insecure-registry", registry.host)
    assert code == 0
    assert "raw" in out


def test_names_that_are_known(call: Call) -> None:
    known = json.loads(call("ls", "--known", "-o", "json")[1])
    assert known["debian-12"].startswith("https://cloud.debian.org/")
    assert all(place.startswith(("https://", "docker://")) for place in known.values())


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("pull", "nothing-of-this-name"), "no known name"),
        (("frobnicate",), "unknown command"),
        (("rm",), "name images"),
        (("rm", "123456"), "no image"),
        (("push", "123456", "docker://x/y"), "no image"),
        (("pull", "fedora-images", "--authfile", "/nonexistent"), "no known name"),
    ],
)
def test_what_cannot_be_done_is_said(words: tuple[str, ...], text: str, call: Call) -> None:
    code, _, err = call(*words)
    assert code == 2
    assert text in err


def test_help(call: Call) -> None:
    assert "build" in call()[1]
    assert "--checksum" in call("pull", "--help")[1]
