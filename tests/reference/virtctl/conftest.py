"""Shared parts of the tests with the real virtctl: both virtctls, a `paddock up` that runs machines, and one guest for most tests.

The guest is the tiny one of `tests/host`, on a claim of its own. Machines outlive a server, so the fixture ends every QEMU that holds a
lock below its directory.
"""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from paddock.engine.machine.process import holders
from tests.host.guests import serving as web_server
from tests.host.guests import tiny_guest
from tests.host.machine import lacks
from tests.reference import recipes
from tests.reference.build import built
from tests.reference.client import MERGE_PATCH, Api
from tests.reference.embedded import Embedded, serving

# A fixture that pytest finds here.
__all__ = ["tiny_guest"]
Json = dict[str, Any]
MACHINES, INSTANCES = (
    "/apis/kubevirt.io/v1/namespaces/default/virtualmachines",
    "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances",
)
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
# A guest boots in seconds, on a busy host that emulates it in tens of them.
BOOT_SECONDS = 180.0


class Virtctl:
    """One virtctl with a home and a configuration of its own."""

    def __init__(self, program: Path, release: str, kubeconfig: Path, home: Path) -> None:
        self.program = program
        self.release = release
        home.mkdir(exist_ok=True)
        self.environment = {"PATH": f"{home}:/usr/bin:/bin", "HOME": str(home), "KUBECONFIG": str(kubeconfig)}
        # ssh and scp begin a second virtctl by its name.
        (home / "virtctl").symlink_to(program)
        self.home = home

    def command(self, *words: object) -> list[str]:
        """As it is started."""
        return [str(self.program), *map(str, words)]

    def run(self, *words: object, seconds: float = 60, **environment: str) -> "subprocess.CompletedProcess[str]":
        """Return its output, whether it succeeds or not."""
        told = {**self.environment, **environment}
        # Without the terminal of whoever runs the tests, where ssh would ask for a password.
        command = self.command(*words)
        return subprocess.run(command, env=told, input="", capture_output=True, text=True, timeout=seconds, start_new_session=True)

    def ok(self, *words: object, seconds: float = 60) -> str:
        """Return its output; it must succeed."""
        done = self.run(*words, seconds=seconds)
        assert done.returncode == 0, f"virtctl {' '.join(map(str, words))}: {done.stdout}{done.stderr}"
        return done.stdout

    def refused(self, *words: object) -> str:
        """Return its complaint; it must fail."""
        done = self.run(*words)
        assert done.returncode != 0, done.stdout
        return done.stdout + done.stderr

    @contextmanager
    def running(self, *words: object) -> "Iterator[subprocess.Popen[str]]":
        """It runs as long as the block lasts."""
        log = self.home / f"{'-'.join(map(str, words))[:40].replace('/', '_')}.log"
        with log.open("w") as errors:
            process = subprocess.Popen(
                self.command(*words), env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        try:
            yield process
        finally:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory, tiny_guest: Any) -> Iterator[Embedded]:
    """A server that runs machines; skipped where there is no QEMU."""
    if reason := lacks("qemu"):
        pytest.skip(f"needs qemu: {reason}")
    root = Path(tempfile.mkdtemp(prefix="pdkv-", dir="/tmp"))
    # QEMU runs as a user of its own, below this directory.
    root.chmod(0o711)
    try:
        with serving(root / "server", "--network", "user", "--image-from", "127.0.0.1", command="up") as server:
            yield server
    finally:
        for lock in root.rglob("machines/*/lock"):
            for pid in holders(lock):
                os.kill(pid, signal.SIGKILL)
        subprocess.run(["rm", "-rf", str(root)], check=True)


@pytest.fixture(scope="session")
def api(host: Embedded) -> Iterator[Api]:
    """Quick requests to it."""
    api = Api(host.access)
    yield api
    api.close()


Get = Callable[[str], Virtctl]


@pytest.fixture(scope="session")
def get_virtctl(host: Embedded, pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Get:
    """A virtctl by its release; the first run on a machine builds it, and says so."""
    terminal = pytestconfig.pluginmanager.getplugin("terminalreporter")

    def get(release: str) -> Virtctl:
        folder = built(recipes.VIRTCTLS[release], say=terminal.write_line if terminal else print)
        return Virtctl(folder / "virtctl", release, host.kubeconfig, tmp_path_factory.mktemp(f"virtctl-{release}"))

    return get


# What is asked of each: an old one and the newest pass it alike.
EACH = [pytest.param(release, marks=pytest.mark.spec("kubevirt", 51)) for release in recipes.VIRTCTLS]


@pytest.fixture(scope="session", params=EACH)
def virtctl(request: pytest.FixtureRequest, get_virtctl: Get) -> Virtctl:
    """One virtctl after the other."""
    return get_virtctl(request.param)


@pytest.fixture(scope="session")
def newest(get_virtctl: Get) -> Virtctl:
    """The newest virtctl, for what older ones have no command for."""
    return get_virtctl(list(recipes.VIRTCTLS)[-1])


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *words: object) -> None:
        """Nothing."""


@pytest.fixture(scope="session")
def image(tiny_guest: Any) -> Iterator[str]:
    """The URL of the tiny guest's disk."""
    disk: Path = tiny_guest.disk
    with web_server(partial(Quiet, directory=str(disk.parent))) as address:
        yield f"http://{address}/{disk.name}"


def machine(name: str, image: str, **spec: Any) -> Json:
    """A machine with the tiny guest."""
    devices: Json = {
        "clientPassthrough": {},
        "disks": [{"name": "root", "disk": {"bus": "virtio"}}, *spec.pop("disks", [])],
        "interfaces": [{"name": "default", "masquerade": {}}],
    }
    hardware: Json = {
        "terminationGracePeriodSeconds": 30,
        "domain": {"cpu": {"cores": 1}, "memory": {"guest": "192Mi"}, "devices": devices},
        "networks": [{"name": "default", "pod": {}}],
        "volumes": [{"name": "root", "dataVolume": {"name": name}}, *spec.pop("volumes", [])],
        **spec.pop("hardware", {}),
    }
    # An old `virtctl expose` selects by the labels of the template.
    labels: Json = {"labels": {"machine": name}}
    disk: Json = {
        "metadata": {"name": name},
        "spec": {"source": {"http": {"url": image}}, "storage": {"resources": {"requests": {"storage": "256Mi"}}}},
    }
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": name},
        "spec": {"runStrategy": "Always", "template": {"metadata": labels, "spec": hardware}, "dataVolumeTemplates": [disk], **spec},
    }


class Guests:
    """The machines of these tests."""

    def __init__(self, api: Api, image: str) -> None:
        self.api = api
        self.image = image

    def make(self, name: str, **spec: Any) -> None:
        """A machine."""
        made = self.api.request("POST", MACHINES, machine(name, self.image, **spec))
        assert made.ok, made.message

    def vm(self, name: str) -> Json:
        """A VirtualMachine as it is now."""
        return self.api.request("GET", f"{MACHINES}/{name}").body

    def vmi(self, name: str) -> Json:
        """A VirtualMachineInstance as it is now; empty when there is none."""
        answer = self.api.request("GET", f"{INSTANCES}/{name}")
        return answer.body if answer.ok else {}

    def phase(self, name: str) -> str:
        return str((self.vmi(name).get("status") or {}).get("phase", ""))

    def until_up(self, name: str) -> None:
        """Its agent is there: the guest has booted."""
        until(f"{name} is up", lambda: holds(self.vmi(name), "AgentConnected"), BOOT_SECONDS)

    def delete(self, name: str) -> None:
        """At once, and wait until it is gone."""
        self.api.request(
            "PATCH", f"{MACHINES}/{name}", {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 0}}}}, headers=MERGE_PATCH
        )
        self.api.request("DELETE", f"{MACHINES}/{name}", {"gracePeriodSeconds": 0})
        until(f"{name} is gone", lambda: not self.api.request("GET", f"{MACHINES}/{name}").ok and not self.vmi(name))


@pytest.fixture(scope="session")
def guests(api: Api, image: str) -> Guests:
    """Makes machines."""
    return Guests(api, image)


@pytest.fixture(scope="session")
def tiny(guests: Guests) -> Iterator[str]:
    """A machine that is up, and stays so; tests leave it as they found it."""
    guests.make("tiny")
    guests.until_up("tiny")
    yield "tiny"
    guests.delete("tiny")


def holds(thing: Json, condition: str) -> bool:
    """Return whether a condition is True."""
    return any(each["type"] == condition and each["status"] == "True" for each in (thing.get("status") or {}).get("conditions") or ())


def until(what: str, is_so: Callable[[], bool], seconds: float = 60) -> None:
    """Look until it is so."""
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            pytest.fail(f"not within {seconds:g} s: {what}")
        time.sleep(0.1)


def claim(api: Api, name: str, size: str) -> None:
    """A blank disk."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    api.request("POST", CLAIMS, {"metadata": {"name": name}, "spec": spec})
    until("it is bound", lambda: (api.request("GET", f"{CLAIMS}/{name}").body.get("status") or {}).get("phase") == "Bound")


def named(what: str, virtctl: Virtctl) -> str:
    """A name of its own for each virtctl."""
    return f"{what}-{virtctl.release.replace('.', '-')}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """These are reference tests, too."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.reference)
