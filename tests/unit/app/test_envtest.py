"""The requirements of envtest for the programs it starts: options, certificates of its own, readiness, an end without traces."""

import asyncio
import os
import signal
import subprocess
from pathlib import Path
from urllib.request import urlopen

import pytest

from paddock.app.commands import envtest_assets
from paddock.app.options import kubeflags
from paddock.app.options import server as options
from paddock.app.options.settings import ServerSettings
from paddock.app.server import etcd
from paddock.base.errors import Terminal
from paddock.cli.console import Console
from paddock.server.security.pki import Authority
from paddock.server.security.signing import new_key
from tests.coroutines import run_by
from tests.unit.app.served import ask, running, trusting

RBAC = "/apis/rbac.authorization.k8s.io/v1"


class Brought:
    """The certificates that envtest makes before it starts a server: one authority for the server, one for its users."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        served, clients = Authority(folder / "one"), Authority(folder / "two")
        certificate, key = served.server(("localhost",))
        certificate.rename(folder / "apiserver.crt")
        key.rename(folder / "apiserver.key")
        self.authority = served.certificate_file
        clients.certificate_file.rename(folder / "client-cert-auth-ca.crt")
        self.admin = self._user(clients, "admin", "system:masters")
        self.ada = self._user(clients, "ada", "dev")
        self.stranger = self._user(served, "admin", "system:masters")
        (folder / "sa-signer.key").write_bytes(new_key())

    def _user(self, authority: Authority, name: str, group: str) -> tuple[Path, Path]:
        certificate, key = authority.client(name, (group,))
        place = self.folder / f"{name}-{group.replace(':', '-')}-{id(authority)}"
        place.with_suffix(".crt").write_bytes(certificate)
        place.with_suffix(".key").write_bytes(key)
        return place.with_suffix(".crt"), place.with_suffix(".key")

    def settings(self, *more: str) -> ServerSettings:
        """Return the options that envtest gives."""
        given = [
            "--allow-privileged=true",
            "--authorization-mode=RBAC",
            "--bind-address=127.0.0.1",
            f"--cert-dir={self.folder}",
            f"--client-ca-file={self.folder}/client-cert-auth-ca.crt",
            "--disable-admission-plugins=ServiceAccount",
            "--etcd-servers=http://127.0.0.1:1",
            "--secure-port=0",
            "--service-account-issuer=https://127.0.0.1:1/",
            f"--service-account-key-file={self.folder}/sa-signer.key",
            f"--service-account-signing-key-file={self.folder}/sa-signer.key",
            "--service-cluster-ip-range=10.0.0.0/24",
        ]
        parsed, _ = options.read("apiserver", "", [*given, *more])
        return options.settings("apiserver", parsed)


@run_by(asyncio.run)
async def test_a_server_runs_on_what_envtest_brings(tmp_path: Path) -> None:
    brought = Brought(tmp_path)
    async with running(brought.settings()) as server:
        admin, ada = trusting(brought.authority, brought.admin), trusting(brought.authority, brought.ada)
        assert (await ask(server.port, trusting(brought.authority), "/healthz")).body == b"ok"
        assert (await ask(server.port, admin, f"{RBAC}/clusterroles")).status == 200
        assert (await ask(server.port, ada, f"{RBAC}/clusterroles")).status == 403
        service = await ask(server.port, admin, "/api/v1/namespaces/default/services/kubernetes")
        assert service.data["spec"]["clusterIP"] == "10.0.0.1"
        wanted = b'{"spec": {}}'
        token = await ask(server.port, admin, "/api/v1/namespaces/default/serviceaccounts/default/token", "POST", wanted)
        bearer = f"Bearer {token.data['status']['token']}"
        assert (await ask(server.port, trusting(brought.authority), "/apis", authorization=bearer)).status == 200
        with pytest.raises(OSError, match=r"."):
            # The server's own authority makes no users here.
            await ask(server.port, trusting(brought.authority, brought.stranger), "/apis")
    assert not (tmp_path / "store.db").exists()
    assert not (tmp_path / "kubeconfig").exists()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"tls_cert_file": "--tls-cert-file=a"}, "a serving certificate needs its key"),
        ({"mode": "--authorization-mode=Webhook"}, "the authorization mode Webhook is not known"),
        ({"range": "--service-cluster-ip-range=fd00::/108"}, "has no IPv4 range"),
        ({"range": "--service-cluster-ip-range=nonsense"}, "is not a range of addresses"),
        ({"port": "--secure-port=70000"}, "is not a port"),
        ({"refused": "--encryption-provider-config=x"}, "--encryption-provider-config cannot be followed: objects are stored as they are"),
        ({"unknown": "--no-such-thing"}, "unrecognized arguments"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_cannot_be_followed_is_refused(given: dict[str, str], expected: str, tmp_path: Path) -> None:
    with pytest.raises(Terminal, match=expected):
        options.settings("apiserver", options.read("apiserver", "", [f"--dir={tmp_path}", *given.values()])[0])


def test_options_without_effect_are_taken_in_every_form_and_named() -> None:
    rest, ignored = kubeflags.without_ignored(["--etcd-servers", "http://a", "--profiling", "--v=4", "--name", "x", "--profiling=false"])
    assert rest == ["--name", "x"]
    assert ignored == ["etcd-servers", "profiling", "v", "profiling"]
    assert kubeflags.note(ignored).startswith("--etcd-servers (objects are kept by this process itself); --profiling (")
    assert kubeflags.note([]) == ""


def test_no_option_is_both_ignored_and_followed() -> None:
    declared = {name.lstrip("-") for action in options.parser("apiserver", "")._actions for name in action.option_strings}
    assert not declared & {*kubeflags.WITHOUT_EFFECT, *kubeflags.REFUSED}
    assert not set(kubeflags.WITHOUT_EFFECT) & set(kubeflags.REFUSED)


def test_all_options_together_make_the_settings(tmp_path: Path) -> None:
    given = (
        "--in-memory --listen=[::1]:9 --advertise-address=10.1.1.1 --tls-san=a --tls-san=b --anonymous-auth=false "
        "--authorization-mode=Node,AlwaysAllow --service-account-issuer=https://one --service-account-issuer=https://two "
        "--api-audiences=x,y --service-account-max-token-expiration=2h --disable-admission-plugins=A,B "
        "--enable-admission-plugins=C --tls-min-version=VersionTLS13"
    )
    parsed, note = options.read("up", "", [f"--dir={tmp_path}", *given.split()])
    found = options.settings("up", parsed)
    assert note == ""
    assert (found.host, found.port, found.advertise, found.names) == ("::1", 9, "10.1.1.1", ("a", "b"))
    assert (found.in_memory, found.temporary, found.anonymous, found.open_to_all, found.controllers) == (True, False, False, True, True)
    assert (found.accounts.issuers, found.accounts.audiences) == (("https://one", "https://two"), ("x", "y"))
    assert (found.accounts.longest_seconds, found.tls.least) == (7200, "VersionTLS13")
    assert found.admission_off == ("A", "B")


def test_where_nothing_is_named_a_store_in_memory_has_a_directory_of_its_own() -> None:
    parsed, _ = options.read("apiserver", "", ["--in-memory"])
    found = options.settings("apiserver", parsed)
    try:
        assert found.temporary
        assert found.root.is_dir()
    finally:
        found.root.rmdir()


@pytest.fixture
def assets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    console = Console()
    assert envtest_assets.run([str(tmp_path / "assets")], console) == 0
    console.flush()
    assert capsys.readouterr().out == f"export KUBEBUILDER_ASSETS={tmp_path}/assets\n"
    return tmp_path / "assets"


@pytest.mark.parametrize(
    ("program", "present", "absent"), [("kube-apiserver", "--secure-port", "--insecure-port"), ("etcd", "--unsafe-no-fsync", "--x")]
)
def test_the_programs_tell_envtest_their_options(assets: Path, program: str, present: str, absent: str) -> None:
    told = subprocess.run([assets / program, "--help"], capture_output=True, text=True, check=True, timeout=60).stdout
    lines = [line.strip() for line in told.splitlines()]
    assert any(line.startswith(present) for line in lines)
    assert not any(line.startswith(absent) for line in lines)


def test_the_stand_in_for_etcd_is_well_until_it_is_told_to_end(assets: Path) -> None:
    reading, writing = os.pipe()
    with subprocess.Popen([assets / "etcd", "--listen-client-urls=http://127.0.0.1:0"], stderr=writing) as process:
        os.close(writing)
        with os.fdopen(reading) as told:
            address = told.readline().split()[-1]
        with urlopen(f"{address}/health", timeout=10) as answer:
            assert answer.read() == b'{"health":"true","reason":""}'
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=10) == 0


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], ("127.0.0.1", 2379)),
        (["--listen-client-urls", "http://127.0.0.1:5,http://127.0.0.1:6"], ("127.0.0.1", 5)),
        (["--data-dir=x", "--listen-client-urls=https://[::1]:7/"], ("::1", 7)),
    ],
)
def test_etcd_answers_where_it_is_told(given: list[str], expected: tuple[str, int]) -> None:
    assert etcd.address(given) == expected


@pytest.mark.spec("kube-api", 153)
@pytest.mark.parametrize(
    ("command", "given", "workloads", "bare"),
    [
        ("up", (), "refused", False),
        ("up", ("--workloads=stored",), "stored", False),
        ("apiserver", (), "stored", False),
        ("apiserver", ("--bare",), "stored", True),
    ],
)
def test_who_stores_workloads(command: str, given: tuple[str, ...], workloads: str, bare: bool) -> None:
    settings = options.settings(command, options.read(command, "", ["--in-memory", *given])[0])
    assert (settings.workloads, settings.bare) == (workloads, bare)


@run_by(asyncio.run)
async def test_a_bare_server_makes_nothing_by_itself(tmp_path: Path) -> None:
    brought = Brought(tmp_path)
    async with running(brought.settings("--bare")) as server:
        admin = trusting(brought.authority, brought.admin)
        assert (await ask(server.port, admin, "/api/v1/nodes")).data["items"] == []
        assert (await ask(server.port, admin, "/api/v1/namespaces/default/serviceaccounts")).data["items"] == []
        pod = b'{"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "image": "b"}]}}'
        assert (await ask(server.port, admin, "/api/v1/namespaces/default/pods", "POST", pod)).status == 201
