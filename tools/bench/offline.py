"""The cost of the commands: one table of figures, each beside its target.

The unit is CPU time (user and system) of child processes, not the clock on the wall, because other programs run
on the same machine. Each figure is the smallest of several runs, and the runs of a figure and of its comparison
take turns, so that a busy moment hits both.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from paddock.kubernetes import catalog

PADDOCK = str(Path(sys.executable).parent / "paddock")
DOCUMENTS = 2000
COLD_RUNS = 15
LONG_RUNS = 3

# 1: findings, or losses of what another dialect does not know; both are printed in full.
_ENDS = (0, 1)

IMPORT = [sys.executable, "-c", "import json"]
MACHINES = ("VirtualMachine", "Machine")


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured; its unit and its target stand beside its name in `results.toml`."""

    name: str
    value: float
    note: str = ""
    peer: float | None = None


class BenchError(Exception):
    """A measured command failed, so its figure would mean nothing."""


def cpu_seconds(command: Sequence[str], *, bytecode: Path) -> float:
    """CPU time of one run of the command, with its output thrown away; ``bytecode`` is where Python keeps what it compiled."""
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, env=environment(bytecode), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in _ENDS:
            errors.seek(0)
            raise BenchError(f"{' '.join(command)} ended with {process.returncode}: {errors.read(2000).decode(errors='replace')}")
    return usage.ru_utime + usage.ru_stime


def environment(bytecode: Path) -> dict[str, str]:
    """An installed program has its bytecode; a developer's settings must not make each run compile it anew."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(bytecode)}


def take_turns(commands: Mapping[str, Sequence[str]], *, runs: int, bytecode: Path) -> dict[str, float]:
    """The smallest CPU time of each command; the first round only warms the disk cache and compiles."""
    rounds = [{name: cpu_seconds(command, bytecode=bytecode) for name, command in commands.items()} for _ in range(runs + 1)]
    return {name: min(taken[name] for taken in rounds[1:]) for name in commands}


def example_documents() -> list[dict[str, Any]]:
    """The shipped examples of all dialects."""
    command = [PADDOCK, "examples", "-o", "json"]
    text = subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL).stdout
    documents: list[dict[str, Any]] = json.loads(text)["items"]
    return documents


def many(documents: Sequence[dict[str, Any]], count: int) -> Iterator[dict[str, Any]]:
    """The documents over and over, each round in a namespace of its own, so that references stay whole."""
    for number in range(count):
        round_number, place = divmod(number, len(documents))
        document = documents[place]
        metadata = dict(document["metadata"])
        if _is_namespaced(document):
            metadata["namespace"] = f"{metadata.get('namespace', 'bench')}-{round_number}"
        else:
            metadata["name"] = f"{metadata['name']}-{round_number}"
        yield {**document, "metadata": metadata}


def _is_namespaced(document: Mapping[str, Any]) -> bool:
    group, _, _ = str(document["apiVersion"]).rpartition("/")
    kind = catalog.find(group, document["kind"])
    return kind is None or kind.namespaced


def measure(folder: Path) -> list[Figure]:
    documents = example_documents()
    mixed = folder / "mixed.yaml"
    mixed.write_text(yaml.dump_all(many(documents, DOCUMENTS), Dumper=yaml.CSafeDumper, sort_keys=False))
    return [*_cold(documents, folder), *_per_document(mixed, folder)]


def _cold(documents: Sequence[dict[str, Any]], folder: Path) -> Iterator[Figure]:
    """One machine of each dialect, in a process of its own."""
    ones: dict[str, Path] = {}
    for document in documents:
        kind = catalog.find(str(document["apiVersion"]).rpartition("/")[0], document["kind"])
        if kind is not None and kind.kind in MACHINES and kind.dialect not in ones:
            ones[kind.dialect] = folder / f"{kind.dialect}.yaml"
            ones[kind.dialect].write_text(yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False))
    commands = {dialect: [PADDOCK, "validate", "-f", str(one)] for dialect, one in ones.items()}
    taken = take_turns({"": IMPORT, **commands}, runs=COLD_RUNS, bytecode=folder / "bytecode")
    for dialect in commands:
        reference = f"{taken[dialect] * 1000:.0f} ms to {taken[''] * 1000:.0f} ms of python -c 'import json'"
        yield Figure(f"validate, one {dialect} machine, cold", taken[dialect] / taken[""], reference)


def _per_document(mixed: Path, folder: Path) -> Iterator[Figure]:
    """Yield the cost of each further document: the long run without the cost of an empty one."""
    one = folder / "one.yaml"
    one.write_text(mixed.read_text().partition("\n---\n")[0] + "\n")
    bytecode = folder / "bytecode"
    for verb in ("validate", "render"):
        cold = take_turns({verb: [PADDOCK, verb, "-f", str(one)]}, runs=COLD_RUNS, bytecode=bytecode)[verb]
        long = take_turns({verb: [PADDOCK, verb, "-f", str(mixed)]}, runs=LONG_RUNS, bytecode=bytecode)[verb]
        reference = f"{DOCUMENTS} mixed documents, {mixed.stat().st_size / 1e6:.1f} MB, {long:.2f} s, less the cold run"
        yield Figure(f"{verb}, per document", (long - cold) / (DOCUMENTS - 1) * 1000, reference)


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows in columns; one that is empty but for its head is left out."""
    used = [at for at in range(len(rows[0])) if any(row[at] for row in rows[1:])]
    widths = [max(len(row[at]) for row in rows) for at in used]
    return "\n".join("  ".join(row[at].ljust(width) for at, width in zip(used, widths, strict=True)).rstrip() for row in rows)
