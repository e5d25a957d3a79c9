"""`paddock ctx`: a server's context comes into a person's kubeconfig and leaves it."""

import io
import sys
from pathlib import Path

import pytest
import yaml

from paddock.app.commands import ctx
from paddock.app.directory import contexts
from paddock.base.directories import context_name
from paddock.base.errors import Terminal, UsageError
from paddock.cli import confirming
from paddock.cli.console import Console
from paddock.server.security import kubeconfig


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("PADDOCK_DIR", str(tmp_path / "lab"))
    return tmp_path


def made(home: Path, name: str = "lab") -> Path:
    root = home / name
    root.mkdir()
    (root / "kubeconfig").write_text(kubeconfig.document("https://127.0.0.1:7443", b"ca", b"cert", b"key", cluster=f"paddock-{name}"))
    return root


def said(*words: str) -> str:
    out = io.BytesIO()
    assert ctx.run([*words], Console(out, io.BytesIO())) == 0
    return out.getvalue().decode()


def config(home: Path) -> dict[str, object]:
    found: dict[str, object] = yaml.safe_load((home / "home/.kube/config").read_text())
    return found


@pytest.mark.parametrize(
    ("root", "name"),
    [
        ("/var/lib/paddock", "paddock"),
        ("/home/me/.local/state/paddock", "paddock"),
        ("/srv/lab", "paddock-lab"),
        ("/srv/lab/paddock", "paddock-lab"),
        ("/srv/My Lab_2", "paddock-my-lab-2"),
        ("/", "paddock"),
    ],
)
def test_contexts_are_named_after_directories(root: str, name: str) -> None:
    assert context_name(Path(root), {"XDG_STATE_HOME": "/home/me/.local/state"}) == name


def test_a_context_comes_and_goes(home: Path) -> None:
    root = made(home)
    assert f'took the server of {root} into {home}/home/.kube/config as "paddock-lab"; it is the current context' in said("add")
    assert config(home)["current-context"] == "paddock-lab"
    assert "took the server" in said("rm") and config(home)["contexts"] == []


def test_a_name_of_ones_own_and_the_current_context(home: Path) -> None:
    made(home)
    said("add")
    assert "use it with `kubectl config use-context other`" in said("add", "--dir", str(made(home, "two")), "--as", "other")
    said("add", "--dir", str(home / "two"), "--as", "other", "--use")
    assert config(home)["current-context"] == "other"


def test_the_name_is_the_servers_own_until_another_is_given(home: Path) -> None:
    root = made(home)
    (root / "kubeconfig").write_text((root / "kubeconfig").read_text().replace("paddock-lab", "mine"))
    assert said("ls", "--dir", str(root)).splitlines()[1].split()[0] == "mine" and 'as "mine"' in said("add")
    assert contexts.name_in_file(root, {"HOME": str(home / "home")}) == "mine"
    said("add", "--as", "other")
    assert 'as "other"' in said("add"), "a repeated add keeps the name that the server has in the file"


@pytest.mark.parametrize("name", ["-x", "a b", "a\nb", "$HOME"])
def test_a_name_that_a_shell_would_not_take(home: Path, name: str) -> None:
    made(home)
    with pytest.raises(Terminal, match="no name for a context"):
        said("add", f"--as={name}")


@pytest.mark.parametrize(("answer", "taken"), [("y\n", True), ("\n", False), ("", False)])
def test_a_new_server_is_offered(home: Path, monkeypatch: pytest.MonkeyPatch, answer: str, taken: bool) -> None:
    monkeypatch.setattr(confirming, "answerable", lambda: True)
    monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
    err = io.BytesIO()
    contexts.offer(made(home), Console(io.BytesIO(), err))
    assert 'as the context "paddock-lab"? [y/N]' in err.getvalue().decode()
    assert (home / "home/.kube/config").exists() is taken


def test_without_a_terminal_nothing_is_offered(home: Path) -> None:
    err = io.BytesIO()
    contexts.offer(made(home), Console(io.BytesIO(), err))
    assert err.getvalue() == b"" and not (home / "home/.kube/config").exists()


def test_the_list_shows_what_is_where(home: Path) -> None:
    made(home)
    said("add")
    lines = said().splitlines()
    assert lines[0].split() == ["CONTEXT", "DIRECTORY", "SERVER", "IN", "THE", "FILE"]
    assert lines[1].split() == ["paddock-lab", str(home / "lab"), "not", "running", "yes,", "current"]


def test_a_list_without_servers_says_how_to_start_one(home: Path) -> None:
    assert "paddock up" in said()


def test_a_directory_without_a_server(home: Path) -> None:
    with pytest.raises(Terminal, match="there is no kubeconfig"):
        said("add")


def test_the_servers_own_file_is_no_target(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = made(home)
    monkeypatch.setenv("KUBECONFIG", str(root / "kubeconfig"))
    with pytest.raises(Terminal, match="own kubeconfig"):
        said("add")


def test_a_deleted_server_is_forgotten(home: Path) -> None:
    root = made(home)
    said("add")
    contexts.forget(root, {"HOME": str(home / "home")})
    assert config(home)["clusters"] == []
    contexts.forget(home / "nowhere", {"HOME": str(home / "none")})
    assert not (home / "none").exists()


@pytest.mark.parametrize("words", [("use",), ("ls", "--use"), ("rm", "--as", "x")])
def test_wrong_usage(home: Path, words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        said(*words)
