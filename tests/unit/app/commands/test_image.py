"""`paddock image`, as it is called."""

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from paddock.app.commands import image_pull
from paddock.app.main import COMMANDS
from paddock.base.images.sources import Http
from paddock.cli import main
from paddock.cli.console import Console
from tests.kit.servers.imageserver import Registry, Server, layer, running
from tests.unit.base.images.conftest import disk

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
    assert err == "", "what takes less than a second has no progress"
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


def test_prune_lists_what_goes_and_removes_it_only_after_a_yes(call: Call, server: Server) -> None:
    digests = {call("pull", server.put(f"/{seed}", disk(seed=seed)))[1].split()[0] for seed in range(2)}
    code, out, err = call("prune", "--dry-run")
    assert (code, len(out.splitlines()), "2 images would go, which frees" in err) == (0, 3, True)
    # No terminal, no yes: nothing happens.
    assert "nothing was removed; --yes removes 2 images" in call("prune")[2]
    assert set(call("ls", "-o", "name")[1].split()) == digests
    assert "removed 2 images, freed" in call("prune", "--yes")[2]
    assert json.loads(call("ls", "-o", "json")[1]) == []
    assert "there is nothing to remove" in call("prune")[2]


def test_prune_keeps_what_is_used_and_what_a_server_may_just_have_fetched(call: Call, server: Server, tmp_path: Path) -> None:
    digest = call("pull", server.put("/disk", BODY))[1].split()[0].removeprefix("sha256:")
    record = tmp_path / "state" / "engine" / "volumes" / "one" / "volume.json"
    record.parent.mkdir(parents=True)
    record.write_text(json.dumps({"base": f"../../images/sha256/{digest}/disk.img"}))
    assert "nothing to remove" in call("prune", "--yes")[2]
    record.unlink()
    (tmp_path / "state" / "server.json").write_text("{}")
    assert "nothing to remove" in call("prune", "--yes")[2]


def test_the_list_shows_use_and_age_and_speaks_every_format(call: Call, server: Server) -> None:
    url = server.put("/disk", BODY)
    digest = call("pull", url)[1].split()[0]
    header, row = call("ls")[1].splitlines()
    assert header.split("  ")[0] == "DIGEST"
    assert "AGE" in header
    assert " no " in row
    assert digest.removeprefix("sha256:") in call("ls", "-o", "wide")[1]
    assert call("ls", "-o", "name")[1] == f"{digest}\n"
    assert f"digest: {digest}" in call("ls", "-o", "yaml")[1]


@pytest.mark.parametrize(
    ("words", "checksum"),
    [
        (("cirros", "--arch", "amd64"), "sha256:07e44a73"),
        (("cirros", "--arch", "amd64", "--latest"), ""),
        (("cirros", "--arch", "amd64", "--checksum", "md5:" + "0" * 32), "md5:0000"),
        # no pin for this one: TLS alone
        (("cirros", "--arch", "arm64"), ""),
    ],
)
def test_a_pinned_name_is_fetched_with_its_checksum(words: tuple[str, ...], checksum: str) -> None:
    options = image_pull.parser()
    source = image_pull._source(options, options.parse_args(list(words)))
    assert isinstance(source, Http) and source.checksum.startswith(checksum) and bool(source.checksum) == bool(checksum)


def test_verify_compares_a_file_with_the_pin(call: Call, tmp_path: Path) -> None:
    (tmp_path / "disk.img").write_bytes(b"something else")
    code, _, err = call("verify", "cirros", str(tmp_path / "disk.img"), "--arch", "amd64")
    assert code != 0 and "is not the build 0.6.2" in err
    code, _, err = call("verify", "debian-12", str(tmp_path / "disk.img"), "--arch", "amd64")
    assert code != 0 and "only TLS" in err


def test_the_known_names_say_how_they_are_checked(call: Call) -> None:
    lines = {line.split()[0]: line for line in call("ls", "--known")[1].splitlines()}
    assert "checksum (amd64)" in lines["cirros"] and " TLS " in lines["debian-12"]
