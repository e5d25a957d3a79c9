"""The operator's image: the same bytes from two builds, nothing in it that is not needed, and an operator that acts in a container."""

import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.host.conftest import Spawn, wait_until
from tests.host.container.podman import Podman, limits
from tools.container import build, recipes
from tools.container.build import BuiltImage
from tools.packages import bill

pytestmark = [pytest.mark.needs("apt")]
Layout = dict[str, Any]
MACHINE = build.ROOT / "src/paddock/dialects/vitistack/examples/basic.yaml"
STORAGE = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: usual
  annotations: {storageclass.kubernetes.io/is-default-class: "true"}
provisioner: example.com/none
---
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> BuiltImage:
    return build.build(recipes.OPERATOR, tmp_path_factory.mktemp("image"))


@pytest.fixture(scope="module")
def members(built: BuiltImage) -> dict[str, tarfile.TarInfo]:
    """The files of all layers by name, the uppermost last."""
    found: dict[str, tarfile.TarInfo] = {}
    with tarfile.open(built.archive) as archive:
        for each in manifest(archive, built.digest)["layers"]:
            with tarfile.open(fileobj=archive.extractfile(blob(each["digest"])), mode="r:gz") as layer:
                names = [info.name for info in layer]
                assert names == sorted(names)
                assert found.keys().isdisjoint(names), "each file is in one layer"
                found.update({info.name: info for info in layer})
    return found


def blob(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def document(archive: tarfile.TarFile, name: str) -> Layout:
    opened = archive.extractfile(name)
    assert opened is not None
    found: Layout = json.loads(opened.read())
    return found


def manifest(archive: tarfile.TarFile, digest: str) -> Layout:
    return document(archive, blob(digest))


@pytest.mark.slow
def test_two_builds_give_the_same_bytes(built: BuiltImage, tmp_path: Path) -> None:
    again = build.build(recipes.OPERATOR, tmp_path)
    assert again.digest == built.digest
    sums = [[hashlib.sha256(path.read_bytes()).hexdigest() for path in (each.archive, each.bill)] for each in (built, again)]
    assert sums[0] == sums[1]


def test_the_image_says_what_it_is(built: BuiltImage) -> None:
    commit = bill.git("rev-parse", "HEAD")
    with tarfile.open(built.archive) as archive:
        (entry,) = document(archive, "index.json")["manifests"]
        assert entry["digest"] == built.digest
        stated = manifest(archive, built.digest)
        config = document(archive, blob(stated["config"]["digest"]))
        for each in (stated["config"], *stated["layers"]):
            opened = archive.extractfile(blob(each["digest"]))
            assert opened is not None and f"sha256:{hashlib.sha256(opened.read()).hexdigest()}" == each["digest"]
    labels = config["config"]["Labels"]
    assert labels == stated["annotations"]
    assert labels["org.opencontainers.image.revision"].removesuffix("-dirty") == commit
    assert built.archive.name.split("_")[1] == labels["org.opencontainers.image.version"]
    assert (config["config"]["User"], config["config"]["Entrypoint"]) == ("65532:65532", ["/usr/bin/paddock"])


def test_nothing_is_in_it_that_is_not_needed(built: BuiltImage, members: dict[str, tarfile.TarInfo]) -> None:
    programs = {name for name, info in members.items() if info.isreg() and info.mode & 0o111 and "/lib/" not in f"/{name}"}
    assert programs == {"usr/bin/paddock", f"usr/bin/python{recipes.PYTHON}"}, "no shell, no package manager"
    assert all(info.uid == info.gid == 0 for info in members.values())
    writable = {name for name, info in members.items() if not info.issym() and info.mode & 0o022}
    assert writable == {"tmp", "var/tmp"}
    assert len({info.mtime for info in members.values()}) == 1
    assert not [name for name in members if "/backports" in name or "pycparser" in name]
    assert built.unpacked < 130e6


def test_the_bill_names_every_package(built: BuiltImage, members: dict[str, tarfile.TarInfo]) -> None:
    listed = json.loads(built.bill.read_text())
    purls = {each["purl"].split("@")[0] for each in listed["components"]}
    debian = {name.rpartition("/")[2] for name, info in members.items() if name.startswith("var/lib/dpkg/status.d/") and info.isreg()}
    assert {f"pkg:deb/debian/{name}" for name in debian} == {each for each in purls if "deb" in each}
    installed = {name.split("/")[-1].rsplit("-", 2)[0] for name in members if name.endswith(".dist-info")}
    assert {f"pkg:pypi/{name.replace('_', '-').lower()}" for name in installed} == {each for each in purls if "pypi" in each}
    assert listed["metadata"]["component"]["type"] == "container"


@pytest.fixture
def podman(built: BuiltImage, work: Path) -> Iterator[Podman]:
    made = Podman(work / "podman")
    yield made
    made.close()


@pytest.fixture
def server(work: Path, spawn: Spawn) -> Path:
    """The kubeconfig of an API server without controllers; the container's user may read it."""
    spawn([sys.executable, "-m", "paddock.app", "apiserver", f"--dir={work}/server", "--listen=127.0.0.1:0"])
    wait_until("the server is ready", lambda: kubectl(work / "server/kubeconfig", "get", "--raw", "/readyz").returncode == 0, 120)
    target = work / "kubeconfig"
    shutil.copyfile(work / "server/kubeconfig", target)
    target.chmod(0o644)
    return target


def kubectl(kubeconfig: Path, *words: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["kubectl", "--kubeconfig", str(kubeconfig), *words], input=stdin, capture_output=True, text=True, check=False)


def page(port: int, path: str) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


@pytest.mark.needs("root", "podman", "kubectl")
def test_two_operators_in_containers(podman: Podman, built: BuiltImage, server: Path, free_port: Callable[[], int]) -> None:
    image = podman.load(built.archive)
    assert image.endswith(f"/paddock-operator:{built.archive.name.split('_')[1]}")
    assert podman.ok("run", "--rm", "--read-only", "--network=none", *limits(), image, "version").startswith("paddock ")
    ports = {name: free_port() for name in ("one", "two")}
    for name, port in ports.items():
        words = ["operator", "--kubeconfig=/kubeconfig", "--dialect=vitistack", "--namespace=default", "--metrics-bind-address=0"]
        podman.start(name, image, [f"--volume={server}:/kubeconfig:ro"], [*words, f"--health-probe-bind-address=127.0.0.1:{port}"])
        wait_until(f"operator {name} is ready", lambda port=port: page(port, "/readyz") == 200, 120)  # type: ignore[misc]
    first = holder(server, "")
    assert podman.ok("inspect", "--format", "{{.HostConfig.ReadonlyRootfs}} {{.EffectiveCaps}}", "one").strip() in ("true []", "true <nil>")
    (pid,) = podman.ok("inspect", "--format", "{{.State.Pid}}", "one").split()
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)
    assert (status["Uid"].split(), int(status["CapEff"], 16)) == (["65532"] * 4, 0)
    done = podman.attempt("exec", "one", f"/usr/bin/python{recipes.PYTHON}", "-c", "open('/tmp/x', 'w')")
    assert "Read-only file system" in done.stderr
    # It acts: a machine becomes one of KubeVirt's.
    text = STORAGE + MACHINE.read_text()
    name = next(each["metadata"]["name"] for each in yaml.safe_load_all(text) if each and each["kind"] == "Machine")
    assert kubectl(server, "apply", "-f", "-", stdin=text).returncode == 0
    wait_until(
        "the operator makes a machine", lambda: name in kubectl(server, "get", "virtualmachines.kubevirt.io", "-A", "-o=name").stdout
    )
    # The leader stops by the image's signal, gives its lease back, and the other one goes on.
    leader = next(name for name in ports if first in podman.logs(name))
    podman.ok("stop", "--time", "20", leader)
    assert podman.ok("inspect", "--format", "{{.State.ExitCode}}", leader).strip() == "0", podman.logs(leader)
    assert holder(server, first) != first


def holder(server: Path, before: str) -> str:
    """Return the holder of the lease, as soon as it is somebody, and nobody that it was before."""
    found: list[str] = []

    def is_held() -> bool:
        words = ["get", "lease", "paddock-operator-vitistack", "-o=jsonpath={.spec.holderIdentity}", "-n=default"]
        found.append(kubectl(server, *words).stdout)
        return found[-1] not in ("", before)

    wait_until("an operator leads", is_held, 120)
    return found[-1]
