"""Two servers side by side: their contexts, and the order in which commands find the one that they talk to."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.host.commands.ownservers import Servers


def namespace(name: str, folder: Path) -> str:
    """A file with a namespace, by which a server is recognized."""
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
    return str(path)


def config(root: Path) -> str:
    return str(root / "kubeconfig")


@pytest.mark.needs("qemu", "kubectl")
def test_contexts_of_two_servers_come_and_go(servers: Servers, work: Path) -> None:
    one, two = work / "One_Lab", work / "two"
    for root in (one, two):
        servers.up(root)
        servers.good("apply", "-f", namespace(root.name.lower().replace("_", "-"), work), "--kubeconfig", config(root))
        servers.good("ctx", "add", "--dir", str(root))
    assert servers.kubectl("config", "get-contexts", "-o", "name").split() == ["paddock-one-lab", "paddock-two"]
    assert servers.kubectl("config", "current-context").strip() == "paddock-one-lab", "the first one stays the current one"
    assert "one-lab" in servers.kubectl("get", "namespaces") and "one-lab" not in servers.kubectl("get", "ns", "--context=paddock-two")
    servers.good("ctx", "add", "--dir", str(two), "--as", "other", "--use")
    assert servers.kubectl("config", "current-context").strip() == "other"
    assert servers.kubectl("config", "get-contexts", "-o", "name").split() == ["other", "paddock-one-lab"], "a server has one context"
    assert "two" in servers.kubectl("get", "namespaces", "-o", "name").replace("namespace/", "").split()
    # What others wrote into the file stays.
    servers.kubectl("config", "set-context", "mine", "--cluster=elsewhere", "--user=me")
    listed = servers.good("ctx").splitlines()
    assert {line.split()[0] for line in listed[1:]} == {"other", "paddock-one-lab"}
    assert "paddock: " not in servers.good("ctx", "rm", "--dir", str(two))
    assert set(servers.kubectl("config", "get-contexts", "-o", "name").split()) == {"mine", "paddock-one-lab"}
    servers.good("ctx", "rm", "--dir", str(one))
    assert servers.kubectl("config", "get-contexts", "-o", "name").split() == ["mine"]
    for kind in ("clusters", "users"):
        assert servers.kubectl("config", f"get-{kind}").split() == ["NAME"]
    assert "kind: Config" in (servers.home / ".kube" / "config").read_text()


@pytest.mark.needs("qemu", "kubectl")
def test_a_removal_restores_what_was_before(servers: Servers, work: Path) -> None:
    servers.kubectl("config", "set-cluster", "work", "--server=https://work:6443")
    servers.kubectl("config", "set-context", "work", "--cluster=work", "--user=me")
    servers.kubectl("config", "use-context", "work")
    before = servers.kubectl("config", "view", "--raw")
    one, two = work / "one", work / "two"
    servers.up(one, None, "--name=lab")
    servers.good("ctx", "add", "--dir", str(one), "--use")
    assert servers.kubectl("config", "current-context").strip() == "lab" and "default" in servers.kubectl("get", "namespaces")
    servers.up(two, None, "--name=lab")
    refused = servers.call("ctx", "add", "--dir", str(two))
    assert refused.returncode == 2 and f"the server of {one}" in refused.stderr
    assert f"paddock ctx add --dir {two} --as NAME" in refused.stderr
    servers.good("ctx", "add", "--dir", str(two), "--as", "other")
    assert "default" in servers.kubectl("get", "namespaces", "--context=other")
    for root in (one, two):
        servers.good("ctx", "rm", "--dir", str(root))
    assert servers.kubectl("config", "view", "--raw") == before


@pytest.mark.needs("qemu", "kubectl")
def test_the_first_start_in_a_terminal_offers_the_context(servers: Servers, work: Path) -> None:
    root = work / "lab"
    words = ("up", "--detach", f"--dir={root}", "--listen=127.0.0.1:0", "--network=user")
    first = servers.terminal(*words)
    try:
        first.until(b'as the context "paddock-lab"? [y/N] ')
        first.type(b"y\n")
        first.until(b'as "paddock-lab"; it is the current context')
        assert first.ended() == 0
        assert "default" in servers.kubectl("get", "namespaces", "-o", "name")
        servers.good("down", "--dir", str(root))
        again = servers.terminal(*words)
        again.until(b'its context is "paddock-lab"')
        assert again.ended() == 0, "a directory is offered once"
    finally:
        servers.call("down", "--dir", str(root))


@pytest.mark.needs("qemu")
def test_an_interrupted_offer_leaves_the_server(servers: Servers, work: Path) -> None:
    root = work / "lab"
    start = servers.terminal("up", "--detach", f"--dir={root}", "--listen=127.0.0.1:0", "--network=user")
    try:
        start.until(b"? [y/N] ")
        start.type(b"\x03")
        assert start.ended() != 0 and not (servers.home / ".kube").exists()
        assert "ready" in servers.good("status", "--dir", str(root))
    finally:
        servers.call("down", "--dir", str(root))


@pytest.fixture
def own_system(work: Path) -> Iterator[Servers]:
    """Servers whose /var/lib is a directory of the test."""
    (work / "varlib").mkdir()
    (work / "home").mkdir()
    script = f"mount --bind {work}/varlib /var/lib && echo mounted && exec sleep infinity"
    with subprocess.Popen(["unshare", "-m", "sh", "-c", script], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "mounted\n"
        servers = Servers(work / "home", ("nsenter", "-m", "-t", str(holder.pid)))
        yield servers
        servers.end()
        holder.kill()


@pytest.mark.needs("qemu", "root")
def test_commands_find_their_server_in_the_documented_order(own_system: Servers, work: Path) -> None:
    servers = own_system
    roots, users, lab = work / "varlib" / "paddock", servers.default, work / "lab"

    def start(root: Path, name: str, seen_as: Path | None = None) -> None:
        servers.up(root, seen_as)
        servers.good("apply", "-f", namespace(name, work), "--kubeconfig", config(seen_as or root))

    def chosen(*words: str, **variables: str) -> tuple[str, str]:
        """Return the server that a command talks to, by its namespace, and what -v says of the choice."""
        ended = servers.call("get", "namespaces", "-o", "name", "-v", *words, **variables)
        assert ended.returncode == 0, ended
        (found,) = {"roots", "users", "lab"} & {line.rpartition("/")[2] for line in ended.stdout.split()}
        (said,) = [line for line in ended.stderr.splitlines() if line.startswith("paddock: https://127.0.0.1:")]
        return found, said.partition(", by ")[2]

    nothing = servers.call("get", "namespaces")
    assert nothing.returncode == 2 and "paddock up" in nothing.stderr
    start(lab, "lab")
    servers.good("ctx", "add", "--dir", str(lab))
    own = f"{servers.home}/.kube/config"
    assert chosen() == ("lab", f"the context paddock-lab of {own}")
    start(users, "users")
    assert chosen() == ("users", f"the context paddock of {users}/kubeconfig")
    start(roots, "roots", Path("/var/lib/paddock"))
    assert chosen() == ("roots", "the context paddock of /var/lib/paddock/kubeconfig")
    assert chosen(PADDOCK_DIR=str(users))[0] == "users"
    assert chosen(KUBECONFIG=config(lab)) == ("lab", f"the context paddock-lab of {config(lab)}")
    assert chosen("--kubeconfig", config(users), KUBECONFIG=config(lab)) == ("users", f"the context paddock of {users}/kubeconfig")
    assert chosen("--context", "paddock-lab") == ("lab", f"the context paddock-lab of {own}")
    servers.down(roots)
    assert chosen()[0] == "users"
    servers.down(users)
    assert chosen()[0] == "lab"
