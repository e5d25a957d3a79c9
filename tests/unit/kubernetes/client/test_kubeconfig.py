"""Kubeconfigs: found, merged, every form of authentication, and refusals that say what to do."""

import asyncio
import base64
import json
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
import yaml

from paddock.base import directories
from paddock.base.clock import SystemClock
from paddock.kubernetes.client import incluster, kubeconfig
from paddock.kubernetes.client.access import Access, ClientCertificate, Credential
from paddock.kubernetes.client.errors import BadAccess
from paddock.kubernetes.client.execplugin import ExecPlugin
from paddock.kubernetes.client.tokenfile import TokenFile
from tests.coroutines import run_by

CLOCK = SystemClock()


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.time = 1000.0

    def seconds(self) -> float:
        return self.time


def run(work: Coroutine[Any, Any, Credential]) -> Credential:
    return asyncio.run(work)


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def config(user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "preferences": {},
        "clusters": [{"name": "c", "cluster": {"server": "https://h:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
        "current-context": "x",
    }


def write(folder: Path, document: Any, name: str = "config") -> Path:
    path = folder / name
    path.write_text(yaml.safe_dump(document))
    return path


def load(folder: Path, user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None) -> Access:
    return kubeconfig.find({}, CLOCK, explicit=write(folder, config(user, cluster)))


def shown(access: Access) -> Credential:
    return run(access.credentials.current())


def test_what_a_cluster_says(tmp_path: Path) -> None:
    said = {
        "certificate-authority-data": encoded("CA"),
        "tls-server-name": "other",
        "proxy-url": "socks5://p:1",
        "disable-compression": True,
    }
    found = load(tmp_path, cluster=said)
    assert (found.server, found.authority, found.tls_name, found.proxy) == ("https://h:6443", b"CA", "other", "socks5://p:1")
    assert (found.namespace, found.insecure) == ("team", False)
    (tmp_path / "ca.pem").write_text("FILE")
    assert load(tmp_path, cluster={"certificate-authority": "ca.pem"}).authority == b"FILE"
    assert load(tmp_path, cluster={"insecure-skip-tls-verify": True}).insecure
    assert load(tmp_path, cluster={"server": "h:1"}).server == "https://h:1"


@pytest.mark.parametrize(
    ("user", "headers"),
    [
        ({}, ()),
        ({"token": "t"}, (("authorization", "Bearer t"),)),
        ({"username": "ada", "password": "pass:word"}, (("authorization", f"Basic {encoded('ada:pass:word')}"),)),
        (
            {"token": "t", "as": "bob", "as-uid": "7", "as-groups": ["g", "h"], "as-user-extra": {"reason": ["r"]}},
            (
                ("authorization", "Bearer t"),
                ("impersonate-user", "bob"),
                ("impersonate-uid", "7"),
                ("impersonate-group", "g"),
                ("impersonate-group", "h"),
                ("impersonate-extra-reason", "r"),
            ),
        ),
    ],
)
def test_users_by_headers(tmp_path: Path, user: dict[str, Any], headers: tuple[tuple[str, str], ...]) -> None:
    assert shown(load(tmp_path, user)) == Credential(headers)


def test_users_by_certificate_in_place_and_in_files(tmp_path: Path) -> None:
    wanted = Credential((), ClientCertificate(b"CERT", b"KEY"))
    assert shown(load(tmp_path, {"client-certificate-data": encoded("CERT"), "client-key-data": encoded("KEY")})) == wanted
    (tmp_path / "cert.pem").write_text("CERT")
    (tmp_path / "key.pem").write_text("KEY")
    assert shown(load(tmp_path, {"client-certificate": "cert.pem", "client-key": str(tmp_path / "key.pem")})) == wanted


def test_certificates_in_files_are_read_again(tmp_path: Path) -> None:
    def put(text: str) -> None:
        for name in ("cert", "key"):
            (tmp_path / name).write_text(f"{name} {text}")

    put("one")
    clock = Clock()
    user = {"client-certificate": "cert", "client-key": "key", "as": "bob"}
    found = kubeconfig.find({}, clock, explicit=write(tmp_path, config(user)))
    first = Credential((("impersonate-user", "bob"),), ClientCertificate(b"cert one", b"key one"))
    assert shown(found) == first
    put("two")
    clock.time += 59
    assert shown(found) == first
    clock.time += 1
    second = Credential(first.headers, ClientCertificate(b"cert two", b"key two"))
    assert shown(found) == second
    (tmp_path / "key").unlink()
    clock.time += 60
    assert shown(found) == second
    assert not found.credentials.refused(second)
    put("three")
    assert found.credentials.refused(second)
    assert shown(found).certificate == ClientCertificate(b"cert three", b"key three")


def test_token_files_are_read_again(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("one\n")
    clock = Clock()
    found = kubeconfig.find({}, clock, explicit=write(tmp_path, config({"tokenFile": "token", "token": "ignored"})))
    assert isinstance(found.credentials, TokenFile)
    assert shown(found).headers == (("authorization", "Bearer one"),)
    (tmp_path / "token").write_text("two")
    clock.time += 59
    assert shown(found).headers == (("authorization", "Bearer one"),)
    clock.time += 1
    assert shown(found).headers == (("authorization", "Bearer two"),)
    # A file that is being replaced spoils nothing.
    (tmp_path / "token").unlink()
    clock.time += 60
    assert shown(found).headers == (("authorization", "Bearer two"),)
    assert not found.credentials.refused(shown(found))
    (tmp_path / "token").write_text("three")
    assert found.credentials.refused(Credential((("authorization", "Bearer two"),)))
    assert shown(found).headers == (("authorization", "Bearer three"),)


@pytest.mark.parametrize(
    ("user", "cluster", "text"),
    [
        ({"auth-provider": {"name": "gcp"}}, {}, "auth-provider.*taken these out.*exec plugin"),
        ({"client-certificate-data": encoded("c")}, {}, "client certificate alone"),
        ({"client-key-data": encoded("c")}, {}, "client key alone"),
        ({"client-certificate-data": "%%", "client-key-data": "%%"}, {}, "no base64"),
        ({"client-certificate": "nowhere.pem", "client-key": "nowhere.pem"}, {}, "cannot read the client-certificate"),
        ({"as-groups": ["g"]}, {}, "impersonates groups and no user"),
        ({"exec": {"command": "p", "apiVersion": "client.authentication.k8s.io/v1alpha1"}}, {}, "v1alpha1.*update the plugin"),
        (
            {"exec": {"command": "p", "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Always"}},
            {},
            "must ask a person",
        ),
        ({"exec": {"apiVersion": "client.authentication.k8s.io/v1"}}, {}, "names no command"),
        ({}, {"insecure-skip-tls-verify": True, "certificate-authority-data": encoded("CA")}, "take one of them out"),
        ({"token": ["x"]}, {}, "cannot read the kubeconfig .*Expected `str`"),
    ],
)
def test_refusals(tmp_path: Path, user: dict[str, Any], cluster: dict[str, Any], text: str) -> None:
    with pytest.raises(BadAccess, match=text):
        load(tmp_path, user, cluster)


def test_several_files_are_one(tmp_path: Path) -> None:
    first = write(tmp_path, {"current-context": "two", "users": [{"name": "u", "user": {"token": "first"}}]}, "first")
    folder = tmp_path / "sub"
    folder.mkdir()
    (folder / "ca.pem").write_text("CA")
    second = config({"token": "second"}, {"certificate-authority": "ca.pem"})
    second["contexts"].append({"name": "two", "context": {"cluster": "c", "user": "u"}})
    environ = {"KUBECONFIG": f"{first}:{tmp_path / 'missing'}:{write(folder, second)}"}
    found = kubeconfig.find(environ, CLOCK)
    assert (shown(found).headers, found.authority, found.namespace) == ((("authorization", "Bearer first"),), b"CA", "default")
    assert kubeconfig.find(environ, CLOCK, context="x").namespace == "team"
    with pytest.raises(BadAccess, match="no context 'three'; choose one of two, x"):
        kubeconfig.find(environ, CLOCK, context="three")


def test_a_server_of_this_host_comes_before_the_users_kubeconfig(tmp_path: Path) -> None:
    home = tmp_path / "home" / ".kube"
    home.mkdir(parents=True)
    write(home, config({"token": "home"}))
    environ = {"HOME": str(tmp_path / "home"), "PADDOCK_DIR": str(tmp_path)}
    write(tmp_path, config({"token": "server"}), "kubeconfig")

    def token(**more: str) -> str:
        local = directories.running_kubeconfigs(environ | more)
        return shown(kubeconfig.find(environ | more, CLOCK, local=local)).headers[0][1]

    # Nothing runs there yet.
    assert token() == "Bearer home"
    (tmp_path / "server.json").touch()
    assert token() == "Bearer server"
    named = write(tmp_path, config({"token": "named"}), "named")
    assert token(KUBECONFIG=str(named)) == "Bearer named"


def test_where_one_looks(tmp_path: Path) -> None:
    assert kubeconfig.paths({"HOME": "/h"}) == (Path("/h/.kube/config"),)
    assert kubeconfig.paths({"KUBECONFIG": "/a::/b"}) == (Path("/a"), Path("/b"))
    with pytest.raises(BadAccess, match="there is no kubeconfig"):
        kubeconfig.find({}, CLOCK, explicit=tmp_path / "nothing")
    with pytest.raises(BadAccess, match="no current context"):
        kubeconfig.find({"HOME": str(tmp_path)}, CLOCK)
    broken = tmp_path / "broken"
    broken.write_text("a: [")
    with pytest.raises(BadAccess, match="cannot read the kubeconfig"):
        kubeconfig.find({}, CLOCK, explicit=broken)
    for part, text in (("clusters", "cluster 'c' that the kubeconfig lacks"), ("users", "user 'u' that the kubeconfig lacks")):
        with pytest.raises(BadAccess, match=text):
            kubeconfig.find({}, CLOCK, explicit=write(tmp_path, {**config(), part: None}))


def test_a_pod_has_its_own_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incluster, "FOLDER", tmp_path)
    for name, text in (("token", "t"), ("ca.crt", "CA"), ("namespace", "team\n")):
        (tmp_path / name).write_text(text)
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443", "HOME": str(tmp_path)}
    found = incluster.load(environ, CLOCK, tmp_path)
    assert (found.server, found.authority, found.namespace) == ("https://[fd00::1]:443", b"CA", "team")
    assert shown(found).headers == (("authorization", "Bearer t"),)
    assert incluster.is_inside(environ)
    with pytest.raises(BadAccess, match="runs in no cluster"):
        incluster.load({}, CLOCK, tmp_path)
    with pytest.raises(BadAccess, match="ServiceAccount's files"):
        incluster.load(environ, CLOCK, tmp_path / "none")


PLUGIN = """#!/bin/sh
echo run >> "$0.runs"
echo "$KUBERNETES_EXEC_INFO" > "$0.info"
echo "$1 $MODE" > "$0.arguments"
cat "$0.answer"
exit $(cat "$0.code" 2>/dev/null || echo 0)
"""


class Plugin:
    """A program that answers what a test wants."""

    def __init__(self, folder: Path, version: str = "v1") -> None:
        self.path = folder / "plugin"
        self.path.write_text(PLUGIN)
        self.path.chmod(0o755)
        self.version = f"client.authentication.k8s.io/{version}"
        self.clock = Clock()
        user = {
            "exec": {
                "apiVersion": self.version,
                "command": "./plugin",
                "args": ["login"],
                "env": [{"name": "MODE", "value": "quiet"}],
                "interactiveMode": "IfAvailable",
                "provideClusterInfo": True,
                "installHint": "install the plugin",
            }
        }
        extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "us"}}
        cluster = {"certificate-authority-data": encoded("CA"), "extensions": [extension]}
        access = kubeconfig.find({}, self.clock, explicit=write(folder, config(user, cluster)))
        assert isinstance(access.credentials, ExecPlugin)
        self.credentials = access.credentials

    def answers(self, status: dict[str, str] | None, code: int = 0, **other: str) -> None:
        said = {"apiVersion": self.version, "kind": "ExecCredential", "status": status, **other}
        self.file("answer").write_text(yaml.safe_dump(said) if other.get("kind") == "yaml" else json.dumps(said))
        self.file("code").write_text(str(code))

    def file(self, name: str) -> Path:
        return self.path.with_name(f"plugin.{name}")

    @property
    def runs(self) -> int:
        return len(self.file("runs").read_text().splitlines())


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
@run_by(asyncio.run)
async def test_exec_plugins(tmp_path: Path, version: str) -> None:
    plugin = Plugin(tmp_path, version)
    plugin.answers({"token": "one", "expirationTimestamp": "1970-01-01T00:20:00Z"})
    found = await asyncio.gather(*(plugin.credentials.current() for _ in range(5)))
    assert {each.headers for each in found} == {(("authorization", "Bearer one"),)}
    assert plugin.runs == 1
    plugin.answers({"token": "two"})
    plugin.clock.time = 1199.0
    assert await plugin.credentials.current() == found[0]
    plugin.clock.time = 1200.0
    second = await plugin.credentials.current()
    assert (second.headers, plugin.runs) == ((("authorization", "Bearer two"),), 2)
    # Without an end it holds until a server says no; then it is asked for once, however many were refused.
    plugin.clock.time += 1e6
    assert await plugin.credentials.current() == second
    plugin.answers({"clientCertificateData": "CERT", "clientKeyData": "KEY"})
    assert all(plugin.credentials.refused(second) for _ in range(3))
    third = await plugin.credentials.current()
    assert plugin.credentials.refused(second)
    assert await plugin.credentials.current() == third == Credential((), ClientCertificate(b"CERT", b"KEY"))
    assert plugin.runs == 3
    info = yaml.safe_load(plugin.file("info").read_text())
    assert info == {
        "apiVersion": plugin.version,
        "kind": "ExecCredential",
        "spec": {
            "interactive": False,
            "cluster": {"server": "https://h:6443", "certificate-authority-data": encoded("CA"), "config": {"audience": "us"}},
        },
    }
    assert plugin.file("arguments").read_text() == "login quiet\n"


@pytest.mark.parametrize(
    ("status", "other", "code", "text"),
    [
        ({"token": "x"}, {}, 3, "ended with 3.*install the plugin"),
        ({}, {}, 0, "neither a token nor a certificate"),
        ({"clientCertificateData": "C"}, {}, 0, "neither a token nor a certificate"),
        ({"token": "x"}, {"apiVersion": "client.authentication.k8s.io/v1beta1"}, 0, "answered .*v1beta1 where"),
        ({"token": "x"}, {"kind": "yaml"}, 0, "gave no ExecCredential"),
    ],
)
def test_exec_plugins_that_fail(tmp_path: Path, status: dict[str, str], other: dict[str, str], code: int, text: str) -> None:
    plugin = Plugin(tmp_path)
    plugin.answers(status, code, **other)
    with pytest.raises(BadAccess, match=text):
        run(plugin.credentials.current())


def test_a_plugin_that_is_not_there(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    plugin.path.unlink()
    with pytest.raises(BadAccess, match=r"cannot run .*install the plugin"):
        run(plugin.credentials.current())
