"""The API that an operator works against."""

import json
from pathlib import Path

import pytest

from paddock.app.operator import kubeconfig as wayin
from paddock.app.operator.settings import OperatorSettings
from paddock.base.clock import SystemClock
from paddock.kubernetes.client import incluster
from paddock.kubernetes.client.errors import BadAccess

POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def kubeconfig(path: Path, server: str) -> Path:
    clusters = [{"name": each, "cluster": {"server": f"{server}/{each}"}} for each in ("a", "b")]
    contexts = [{"name": each, "context": {"cluster": each, "namespace": f"of-{each}"}} for each in ("a", "b")]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"clusters": clusters, "contexts": contexts, "current-context": "a"}))
    return path


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("ca.crt", "authority"), ("namespace", "machines"), ("token", "t")):
        (tmp_path / name).write_text(text)
    load = incluster.load
    monkeypatch.setattr(incluster, "load", lambda environ, clock: load(environ, clock, tmp_path))


@pytest.mark.usefixtures("account")
def test_what_is_named_wins_over_the_pod_and_that_over_the_home(tmp_path: Path) -> None:
    named = kubeconfig(tmp_path / "named", "https://named")
    of_variable = kubeconfig(tmp_path / "variable", "https://variable")
    kubeconfig(tmp_path / "home/.kube/config", "https://home")
    everything = {**POD, "KUBECONFIG": str(of_variable), "HOME": str(tmp_path / "home")}
    clock = SystemClock()

    def server(settings: OperatorSettings, *without: str) -> tuple[str, str]:
        found = wayin.find(settings, {name: value for name, value in everything.items() if name not in without}, clock)
        return found.server, found.namespace

    assert server(OperatorSettings(kubeconfig=named)) == ("https://named/a", "of-a")
    assert server(OperatorSettings(kubeconfig=named, context="b")) == ("https://named/b", "of-b")
    assert server(OperatorSettings()) == ("https://variable/a", "of-a")
    assert server(OperatorSettings(context="b")) == ("https://variable/b", "of-b")
    assert server(OperatorSettings(), "KUBECONFIG") == ("https://10.96.0.1:443", "machines")
    assert server(OperatorSettings(), "KUBECONFIG", *POD) == ("https://home/a", "of-a")


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"HOME": "/nowhere"}, "there is no API to work against; give --kubeconfig or KUBECONFIG"),
        ({"KUBECONFIG": "/nowhere/config", **POD}, "cannot use KUBECONFIG=/nowhere/config: there is no kubeconfig /nowhere/config"),
        ({"KUBECONFIG": "/nowhere/a:/nowhere/b"}, "cannot use KUBECONFIG=/nowhere/a:/nowhere/b: the kubeconfig names no current context"),
    ],
)
def test_what_cannot_be_used_is_named(environ: dict[str, str], words: str) -> None:
    with pytest.raises(BadAccess) as refused:
        wayin.find(OperatorSettings(), environ, SystemClock())
    assert str(refused.value).startswith(words)


def test_the_front_has_a_kubeconfig_of_its_own(tmp_path: Path) -> None:
    assert wayin.front(OperatorSettings(), POD, SystemClock()) is None
    found = wayin.front(OperatorSettings(front=kubeconfig(tmp_path / "front", "https://front")), POD, SystemClock())
    assert found is not None and found.server == "https://front/a"
