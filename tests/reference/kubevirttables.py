"""Records what KubeVirt's unit tests hand to its webhooks: every request, and every spec of an instance.

The tests run as they are, in a copy of KubeVirt's module in which each function that judges or completes an object writes down first what
it is given by a test. What is recorded lies in the cache, outside the repository, under a key of everything that decides it.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from paddock.base.errors import Terminal
from tests.reference.build import ENVIRONMENT, BuildFailed, GoMissing, cache_root, locked, version_of

FOLDER = Path(__file__).parent / "programs" / "kubevirt-tables"
MODULE = "kubevirt.io/kubevirt"
# Whose tests are run, and whose functions record.
PACKAGES = (
    "pkg/virt-api/webhooks/validating-webhook/admitters",
    "pkg/virt-api/webhooks/mutating-webhook/mutators",
    "pkg/virt-api/webhooks",
    "pkg/defaults",
    "pkg/network/admitter",
    "pkg/storage/admitters",
    "pkg/dra/admitter",
    "pkg/instancetype/webhooks",
    "pkg/instancetype/webhooks/vm",
    "pkg/instancetype/preference/webhooks",
)
_RECORDER = "pkg/recorded"
_PACKAGE = re.compile(r"^package \w+$", re.MULTILINE)
# A parameter that is recorded, on the line that begins a function or in the list of its parameters below.
_FUNCTION = re.compile(r"^func (?:\([^)]*\) )?\w+\((?P<parameters>[^{}]*?)\)(?P<results>[^{}]*?) ?\{\n", re.MULTILINE)
_RECORDED = (
    (re.compile(r"(\w+) \*admissionv1\.AdmissionReview\b"), "recorded.Review({})"),
    (re.compile(r"(\w+) \*(?:v1|virtv1)\.VirtualMachineInstanceSpec\b"), "recorded.Spec({})"),
    (re.compile(r"(\w+) \*(?:v1|virtv1)\.VirtualMachineInstance\b"), "recorded.Spec(&{}.Spec)"),
)


def key() -> str:
    """Return a name for everything that decides what is recorded."""
    digest = hashlib.sha256()
    for path in (FOLDER / "go.mod", FOLDER / "go.sum", FOLDER / "recorded" / "recorded.go", Path(__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:20]


def recorded(say: Callable[[str], None] = print) -> list[dict[str, Any]]:
    """Return what the tests hand over, without repetitions; it is recorded first if it is not yet."""
    home = cache_root() / "kubevirt-tables"
    done = home / f"{key()}.jsonl"
    home.mkdir(parents=True, exist_ok=True)
    with locked(done.with_suffix(".lock"), say):
        if not done.is_file():
            _record(done, say)
    return [json.loads(line) for line in done.read_text().splitlines()]


def _record(done: Path, say: Callable[[str], None]) -> None:
    if shutil.which("go") is None:
        raise GoMissing(version_of(FOLDER, "go"))
    partial = done.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    modfile = _altered(partial)
    lines: set[str] = set()
    for package in PACKAGES:
        say(f"recording what the tests of {package} hand over (minutes the first time, once per version)")
        lines.update(_run(package, modfile, partial))
    finished = partial / "recorded.jsonl"
    finished.write_text("".join(f"{line}\n" for line in sorted(lines)))
    finished.rename(done)
    shutil.rmtree(partial)


def _altered(partial: Path) -> Path:
    """Copy the module with functions that record, and return a mod file that replaces it by the copy."""
    command = ["go", "mod", "download", "-json", MODULE]
    told = subprocess.run(command, cwd=FOLDER, env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True)
    if told.returncode:
        raise Terminal(f"cannot fetch {MODULE}", why=told.stdout + told.stderr, fix="check that the Go module proxy can be reached")
    copy = partial / "kubevirt"
    # The module cache is read-only, and so would the copy be.
    shutil.copytree(json.loads(told.stdout)["Dir"], copy, copy_function=shutil.copyfile)
    subprocess.run(["chmod", "-R", "u+w", copy], check=True)
    shutil.copytree(FOLDER / "recorded", copy / _RECORDER)
    for package in PACKAGES:
        for path in (copy / package).glob("*.go"):
            if not path.name.endswith("_test.go"):
                path.write_text(recording(path.read_text()))
    modfile = partial / "go.mod"
    text = (FOLDER / "go.mod").read_text().replace("=> ../", f"=> {FOLDER.parent}/")
    modfile.write_text(f"{text}\nreplace {MODULE} => {copy}\n")
    shutil.copyfile(FOLDER / "go.sum", modfile.with_suffix(".sum"))
    return modfile


def recording(text: str) -> str:
    """Return the text of a Go file in which the functions record what they are given."""
    made = _FUNCTION.sub(lambda function: function[0] + "".join(_statements(function["parameters"])), text)
    return text if made == text else _PACKAGE.sub(lambda line: f'{line[0]}\n\nimport "{MODULE}/{_RECORDER}"', made, count=1)


def _statements(parameters: str) -> Iterator[str]:
    for pattern, statement in _RECORDED:
        for found in pattern.finditer(parameters):
            if found[1] != "_":
                yield f"\t{statement.format(found[1])}\n"


def _run(package: str, modfile: Path, partial: Path) -> list[str]:
    program, output = partial / "program", partial / "output"
    program.unlink(missing_ok=True)
    output.unlink(missing_ok=True)
    build = [
        "go",
        "test",
        "-c",
        "-vet=off",
        "-trimpath",
        "-buildvcs=false",
        f"-modfile={modfile}",
        "-o",
        str(program),
        f"{MODULE}/{package}",
    ]
    built = subprocess.run(
        build, cwd=FOLDER, env={**os.environ, **ENVIRONMENT}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if built.returncode:
        raise BuildFailed(f"the tests of {package}", built.stdout)
    if not program.is_file():
        return []
    ran = subprocess.run(
        ["nice", program, "--ginkgo.no-color"],
        cwd=partial / "kubevirt" / package,
        env={**os.environ, "RECORDED": str(output)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if ran.returncode:
        raise Terminal(
            f"cannot record the tests of {package}", why=ran.stdout[-3000:], fix="adapt the recorder to this release of KubeVirt"
        )
    return output.read_text().splitlines() if output.is_file() else []
