"""The command line of `paddock move`, and the servers that `--to` names."""

import asyncio
import socket
from pathlib import Path

import pytest

from paddock.fleet.moves import sides
from paddock.kubernetes.client.errors import BadAccess, Unreachable
from tests.unit.cli.commands import paddock

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: one
contexts: [{name: one, context: {cluster: c}}, {name: two, context: {cluster: d}}]
clusters: [{name: c, cluster: {server: "https://one"}}, {name: d, cluster: {server: "https://two"}}]
"""


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("web",), "name the target with --to"),
        (("--to", "x"), "name machines, or select them with -l"),
        (("web", "-l", "a=b", "--to", "x"), "name machines, or select them with -l"),
        (("web", "--to", "x", "--undo", "--delete-source"), "--undo and --delete-source exclude each other"),
        (("we/b/x?", "--to", "x"), "is no name"),
    ],
)
def test_wrong_usage(words: tuple[str, ...], problem: str) -> None:
    answer = paddock("move", *words)
    assert answer.code == 2 and problem in answer.err


def test_the_target_is_a_context_a_kubeconfig_or_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    assert sides.access_of("two").server == "https://two"
    assert sides.access_of(str(tmp_path)).server == sides.access_of(str(tmp_path / "kubeconfig")).server == "https://one"
    with pytest.raises(
        BadAccess, match=r"no context 'three'.*name a context, a kubeconfig or the directory of a server; choose one of one, two"
    ):
        sides.access_of("three")


async def reach(directory: Path) -> None:
    async with sides.opened(str(directory), ""):
        pass


def test_a_server_that_is_away_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        away = f"127.0.0.1:{closed.getsockname()[1]}"
    (tmp_path / "kubeconfig").write_text(KUBECONFIG.replace("https://one", f"https://{away}"))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    answer = paddock("move", "web", "--to", "two")
    assert answer.code == 2 and f"cannot connect to the source https://{away}: " in answer.err

    with pytest.raises(Unreachable, match=f"cannot connect to the target https://{away}: "):
        asyncio.run(reach(tmp_path))
