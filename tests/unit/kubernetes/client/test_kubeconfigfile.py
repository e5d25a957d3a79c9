"""A person's kubeconfig keeps everything but the entries that Paddock made."""

import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from paddock.base.errors import Transient
from paddock.kubernetes.client import kubeconfigfile
from paddock.kubernetes.client.kubeconfigfile import KubeconfigConflict, UnreadableKubeconfig, merged, without

ROOT = "/var/lib/paddock"
WORK: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Config",
    "preferences": {"colors": True},
    "clusters": [{"name": "work", "cluster": {"server": "https://work:6443"}}],
    "users": [{"name": "me", "user": {"token": "t"}}],
    "contexts": [{"name": "work", "context": {"cluster": "work", "user": "me"}}],
    "current-context": "work",
}


def server(address: str = "https://127.0.0.1:7443") -> dict[str, Any]:
    return {
        "clusters": [{"name": "paddock", "cluster": {"server": address}}],
        "users": [{"name": "paddock-admin", "user": {"client-certificate-data": "c"}}],
        "contexts": [{"name": "paddock", "context": {"cluster": "paddock", "user": "paddock-admin", "namespace": "default"}}],
        "current-context": "paddock",
    }


def names(document: dict[str, Any]) -> list[list[str]]:
    return [[each["name"] for each in document.get(kind) or ()] for kind in ("clusters", "users", "contexts")]


def test_a_server_is_taken_in_and_out_and_the_rest_stays() -> None:
    found = merged(WORK, server(), ROOT, name="lab", use=False)
    assert names(found) == [["work", "lab"], ["me", "lab-admin"], ["work", "lab"]]
    assert found["contexts"][1]["context"]["cluster"] == "lab" and found["contexts"][1]["context"]["user"] == "lab-admin"
    assert (found["current-context"], found["preferences"]) == ("work", {"colors": True})
    assert kubeconfigfile.contexts(found) == {ROOT: "lab"}
    assert without(found, ROOT) == WORK


def test_the_first_context_is_the_current_one_and_another_is_when_it_is_wanted() -> None:
    assert merged({}, server(), ROOT, name="lab", use=False)["current-context"] == "lab"
    used = merged(WORK, server(), ROOT, name="lab", use=True)
    assert used["current-context"] == "lab" and without(used, ROOT) == WORK
    again = merged(used, server(), ROOT, name="new", use=False)
    assert again["current-context"] == "new" and without(again, ROOT) == WORK, "a current context stays it under another name"


def test_the_context_before_returns_past_those_that_went_meanwhile() -> None:
    both = merged(merged(WORK, server(), ROOT, name="one", use=True), server(), "/srv/two", name="two", use=True)
    assert without(both, "/srv/two")["current-context"] == "one"
    assert without(without(both, ROOT), "/srv/two") == WORK
    own = {**both, "contexts": [each for each in both["contexts"] if each["name"] != "one"]}
    assert without(own, "/srv/two")["current-context"] == "", "a context that is gone does not return"


def test_a_renewed_server_replaces_its_own_entries_under_any_name() -> None:
    once = merged(WORK, server(), ROOT, name="lab", use=False)
    again = merged(once, server("https://127.0.0.1:9443"), ROOT, name="paddock", use=False)
    assert names(again) == [["work", "paddock"], ["me", "paddock-admin"], ["work", "paddock"]]
    assert again["clusters"][1]["cluster"]["server"] == "https://127.0.0.1:9443"


@pytest.mark.parametrize("name", ["work", "me"])
def test_entries_of_somebody_else_are_never_replaced(name: str) -> None:
    document = {**WORK, "users": [{"name": "work-admin", "user": {}}]} if name == "work" else {**WORK, "users": [{"name": "me-admin"}]}
    with pytest.raises(KubeconfigConflict, match=f"not of Paddock.*ctx add --dir {ROOT} --as NAME") as caught:
        merged(document, server(), ROOT, name=name, use=False)
    assert "ctx rm" not in str(caught.value)


def test_two_servers_have_their_own_entries() -> None:
    found = merged(merged({}, server(), ROOT, name="paddock", use=False), server(), "/srv/lab", name="paddock-lab", use=False)
    assert kubeconfigfile.contexts(found) == {ROOT: "paddock", "/srv/lab": "paddock-lab"}
    with pytest.raises(KubeconfigConflict, match=f"of the server of {ROOT}.*--as NAME.*ctx rm --dir {ROOT}"):
        merged(found, server(), "/srv/other", name="paddock", use=False)


@pytest.mark.parametrize("text", ["[1, 2]", "a: [", "clusters: 3", "users: [3]"])
def test_what_is_no_kubeconfig_is_not_written(text: str, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(UnreadableKubeconfig, match="config"):
        kubeconfigfile.rewrite(path, lambda document: merged(document, server(), ROOT, name="lab", use=False))
    assert path.read_text() == text


def test_a_new_file_is_its_owners_alone_and_an_old_one_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "kube" / "config"
    assert kubeconfigfile.rewrite(path, lambda document: {**document, **WORK})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o640)
    assert kubeconfigfile.rewrite(path, lambda document: {**document, "current-context": ""})
    assert stat.S_IMODE(path.stat().st_mode) == 0o640 and yaml.safe_load(path.read_text())["current-context"] == ""
    assert not kubeconfigfile.rewrite(path, lambda document: document)
    assert [each.name for each in path.parent.iterdir()] == ["config"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    real = tmp_path / "elsewhere"
    real.write_text("{}")
    link = tmp_path / "config"
    link.symlink_to(real)
    kubeconfigfile.rewrite(link, lambda document: {**document, **WORK})
    assert link.is_symlink() and yaml.safe_load(real.read_text())["current-context"] == "work"


def test_a_lock_that_another_program_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubeconfigfile, "_LOCK_SECONDS", 0.1)
    (tmp_path / "config.lock").touch()
    with pytest.raises(Transient, match="another program"):
        kubeconfigfile.rewrite(tmp_path / "config", dict)
    assert (tmp_path / "config.lock").exists() and not (tmp_path / "config").exists()


def test_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    program = """
        import sys
        from pathlib import Path
        from paddock.kubernetes.client import kubeconfigfile
        user = {"name": sys.argv[2], "user": {}}
        kubeconfigfile.rewrite(Path(sys.argv[1]), lambda found: {**found, "users": [*(found.get("users") or ()), user]})
    """
    words = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "config")]
    writers = [subprocess.Popen([*words, f"u{number}"], env=os.environ) for number in range(4)]
    assert [each.wait() for each in writers] == [0] * 4
    assert {each["name"] for each in yaml.safe_load((tmp_path / "config").read_text())["users"]} == {f"u{number}" for number in range(4)}
