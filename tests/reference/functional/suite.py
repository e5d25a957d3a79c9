"""The program with KubeVirt's functional tests: which specs it has, which of them a group takes, and a run of some of them."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paddock.base.errors import Terminal
from tests.host.machine import lacks
from tests.reference import recipes
from tests.reference.build import built, cache_root
from tests.reference.functional.installation import NAMESPACE, REGISTRY, STORAGE, TAG, Installation

_RECIPES = (recipes.FUNCTIONAL, recipes.VIRTCTLS["1.9"])
_GROUPS = Path(__file__).parent / "groups.toml"
# Give up a wait after this long, and look at least so often. Some specs wait for minutes by intention.
LONGEST_WAIT = int(os.environ.get("KUBEVIRT_LONGEST", "60"))
SLOWEST_LOOK = 1
_LONGEST_MESSAGE = 400
_NOT_TRIED = "Not tried: "
# A spec that the suite itself does not run has no label that says so.
_PENDING = "PENDING"


@dataclass(frozen=True)
class Programs:
    """What is built to run the tests."""

    tests: Path
    # some specs drive it
    virtctl: Path


def missing() -> str:
    """The reason why the tests cannot run on this machine, if there is one."""
    if reason := lacks("qemu"):
        return reason
    is_built = all((cache_root() / recipe.name / recipe.key).is_dir() for recipe in _RECIPES)
    return "" if is_built or shutil.which("go") else "there is no `go` on PATH, which builds KubeVirt's tests"


def programs(say: Callable[[str], None] = print) -> Programs:
    """The programs; the first run on a machine builds them."""
    tests, virtctl = (built(recipe, say=say) for recipe in _RECIPES)
    return Programs(tests / "functional", virtctl / "virtctl")


@dataclass(frozen=True)
class Spec:
    """A test of the suite."""

    name: str
    # below `tests/`
    file: str
    # no other spec begins there, but for a few that no group takes
    line: int
    labels: frozenset[str]


@dataclass(frozen=True)
class Group:
    """Files of the suite that run together."""

    name: str
    files: tuple[str, ...]
    limit: int
    # labels that keep no spec from running in this group
    despite: frozenset[str] = frozenset()

    def takes(self, spec: Spec) -> bool:
        """Return whether a spec stands in a file of this group."""
        return self.takes_file(spec.file)

    def takes_file(self, file: str) -> bool:
        """Return whether the specs of a file are in this group."""
        return any(re.fullmatch(pattern, file) for pattern in self.files)


@dataclass(frozen=True)
class Ending:
    """How a spec ended."""

    name: str
    state: str
    seconds: float
    file: str
    # the line that failed
    where: str = ""
    message: str = ""

    @property
    def is_final(self) -> bool:
        """Return whether the spec came to its own end."""
        return self.state not in ("interrupted", "aborted", "timedout")

    @property
    def is_tried(self) -> bool:
        """Return False for one that fails with an earlier spec of its container, behind which the suite goes on with the next container."""
        return not self.message.startswith(_NOT_TRIED)


def groups() -> dict[str, Group]:
    """The groups by name."""
    known = tomllib.loads(_GROUPS.read_text())["groups"]
    return {name: Group(name, tuple(entry["files"]), entry["limit"], frozenset(entry.get("despite", ()))) for name, entry in known.items()}


def left_out() -> Mapping[str, str]:
    """The labels of specs that cannot run here -> what they need."""
    found: dict[str, str] = tomllib.loads(_GROUPS.read_text())["left-out"]
    return found


def specs(program: Path) -> tuple[Spec, ...]:
    """Every spec of the program."""
    # The same program has the same specs, and asking it takes a processor for seconds.
    report = program.with_name("specs.json")
    if not report.exists():
        _list(program, report)
    entries = json.loads(report.read_text())[0]["SpecReports"]
    return tuple(_spec(entry) for entry in entries if entry["LeafNodeType"] == "It")


def _list(program: Path, report: Path) -> None:
    with tempfile.TemporaryDirectory(dir=report.parent) as folder:
        written = Path(folder, report.name)
        arguments = ("-ginkgo.dry-run", "-ginkgo.succinct", f"-ginkgo.json-report={written}")
        done = subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise Terminal("cannot list KubeVirt's tests", why=done.stdout[-2000:] + done.stderr[-2000:], fix="build them anew")
        written.rename(report)


def _spec(entry: Mapping[str, Any]) -> Spec:
    labels = {label for each in entry["ContainerHierarchyLabels"] or () for label in each or ()} | set(entry["LeafNodeLabels"] or ())
    if entry["State"] == "pending":
        labels.add(_PENDING)
    name = " ".join([*(entry["ContainerHierarchyTexts"] or ()), entry["LeafNodeText"]])
    place = entry["LeafNodeLocation"]
    return Spec(name, below_tests(place["FileName"]), place["LineNumber"], frozenset(labels))


def below_tests(path: str) -> str:
    """The path of a file below the folder of the tests."""
    return path.partition("/tests/")[2] or path


def taken(known: Sequence[Spec], group: Group) -> tuple[Spec, ...]:
    """The specs of a group that can run here."""
    return tuple(spec for spec in known if group.takes(spec) and not without(spec, group))


def without(spec: Spec, group: Group) -> list[str]:
    """Return the labels for which a group leaves a spec out."""
    return sorted(spec.labels & left_out().keys() - group.despite)


def run(programs: Programs, installation: Installation, wanted: Sequence[Spec], folder: Path, limit: int) -> Iterator[Ending]:
    """Run some specs, and yield how each ended as soon as it has."""
    folder.mkdir(parents=True, exist_ok=True)
    results, log = folder / "results.jsonl", folder / "output.log"
    results.write_bytes(b"")
    (folder / "storage.json").write_text(json.dumps(STORAGE))
    environment = {
        **os.environ,
        "SPEC_RESULTS": str(results),
        "GOMEGA_LONGEST": str(LONGEST_WAIT),
        "GOMEGA_SLOWEST": str(SLOWEST_LOOK),
        "REPORTER_MAX_FAILS": "-1",
        "KUBECONFIG": str(installation.kubeconfig),
    }
    with log.open("wb") as output:
        command = _command(programs, installation, wanted, folder, limit)
        # The tests look for files of their module from here.
        started = subprocess.Popen(
            command, cwd=programs.tests.parent / "modules/kubevirt.io/kubevirt", env=environment, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        yield from _followed(results, lambda: started.poll() is not None)
    finally:
        if started.poll() is None:
            started.send_signal(signal.SIGKILL)
            started.wait()


def _command(programs: Programs, installation: Installation, wanted: Sequence[Spec], folder: Path, limit: int) -> list[str]:
    registry = f"{REGISTRY}/kubevirt"
    options = {
        "kubeconfig": installation.kubeconfig,
        "installed-namespace": NAMESPACE,
        "container-prefix": registry,
        "utility-container-prefix": registry,
        "container-tag": TAG,
        "config": folder / "storage.json",
        "artifacts": folder,
        "kubectl-path": shutil.which("kubectl") or "",
        "virtctl-path": programs.virtctl,
        "test.timeout": 0,
        "ginkgo.timeout": f"{limit}s",
        "ginkgo.grace-period": "5s",
        "ginkgo.seed": 1,
    }
    flags = ("-ginkgo.no-color", "-skip-shasums-check")
    return [str(programs.tests), *(f"-{name}={value}" for name, value in options.items()), *flags, *_focus(wanted)]


def _focus(wanted: Sequence[Spec]) -> list[str]:
    """The options that choose some specs. They say lines: to look for a hundred names in each of all specs takes Ginkgo minutes."""
    lines: dict[str, list[int]] = {}
    for spec in wanted:
        lines.setdefault(spec.file, []).append(spec.line)
    return [f"-ginkgo.focus-file=/tests/{re.escape(file)}$:{','.join(map(str, found))}" for file, found in lines.items()]


def _followed(results: Path, is_over: Callable[[], bool]) -> Iterator[Ending]:
    with results.open() as file:
        rest = ""
        while True:
            over = is_over()
            rest += file.read()
            *lines, rest = rest.split("\n")
            yield from (_ending(json.loads(line)) for line in lines)
            if over:
                return
            time.sleep(0.5)


def _ending(line: Mapping[str, Any]) -> Ending:
    files = (below_tests(line["file"]), below_tests(line["where"]))
    return Ending(line["name"], line["state"], round(line["seconds"], 1), *files, _shortened(line["message"]))


def _shortened(message: str) -> str:
    """The beginning of a message, without addresses in memory."""
    return re.sub(r"\b0x[0-9a-f]{6,}", "0x0", " ".join(message.split()))[:_LONGEST_MESSAGE]
