"""The results of a run: a file of what was measured, of which code, on which host and beside which other work, and `results.toml`.

`results.toml` is where a figure has its name, its unit and its target. What a part measures must be what stands there for it. A run at a
load of others says so, and replaces no good one.
"""

import datetime
import hashlib
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tools.bench.offline import BenchError, Figure
from tools.referencepages import figures as pages

_REPOSITORY = Path(__file__).parents[2]
FOLDER = _REPOSITORY / "build" / "bench"
_TICKS = os.sysconf("SC_CLK_TCK")
_HEAD = ("figure", "value", "peer", "ratio", "target", "", "note")


@dataclass
class Circumstances:
    """The circumstances of a run; `load` is how many processors others used, on average."""

    code: str
    host: str
    load: float = 0.0

    @property
    def is_good(self) -> bool:
        """Others did not disturb it."""
        return self.load <= pages.MOST_LOAD


@contextmanager
def circumstances() -> Iterator[Circumstances]:
    """Those of a block: its load is known at the end."""
    found, before, began = Circumstances(digest(_REPOSITORY / "src"), host()), _others(), time.monotonic()
    yield found
    after = _others()
    used = sum(max(after[pid] - seconds, 0.0) for pid, seconds in before.items() if pid in after)
    found.load = round(used / max(time.monotonic() - began, 0.001), 2)


def _others() -> dict[tuple[str, str], float]:
    """The CPU seconds of other processes, with those of their children that ended; a process is known by its id and its start."""
    found, ours = {}, {str(os.getpid())}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and entry.name not in ours:
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            found[entry.name, fields[19]] = sum(map(int, fields[11:15])) / _TICKS
    return found


def digest(folder: Path) -> str:
    """Names the code that was measured, committed or not."""
    made = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        made.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes() + b"\0")
    return made.hexdigest()[:12]


def host() -> str:
    """What it was measured on."""
    cpu = Path("/proc/cpuinfo").read_text()
    model = re.search(r"^model name\s*: (.+)$", cpu, re.MULTILINE)
    name = " ".join((model[1] if model else "unknown").split()[:2])
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    kind = "a virtual machine" if re.search(r"^flags\s*:.*\bhypervisor\b", cpu, re.MULTILINE) else "a machine"
    kvm = "" if os.access("/dev/kvm", os.R_OK | os.W_OK) else ", without KVM"
    return f"{kind} with {os.cpu_count()} processors ({name}), {memory:.0f} GB{kvm}"


def rows(part: str, measured: Sequence[Figure], *, quick: bool = False) -> list[tuple[str, ...]]:
    """The table of a run. A figure that `results.toml` does not have is an error, and so is one that only a quick run may leave out."""
    known = {each.name: each for run in pages.runs() if run.part == part for each in run.figure}
    names = {each.name for each in measured}
    if odd := names - known.keys() if quick else names ^ known.keys():
        where = "; ".join(f"{name!r} is {'not measured' if name in known else 'not there'}" for name in sorted(odd))
        raise BenchError(f"part {part} and tools/bench/results.toml differ: {where}")
    made: list[tuple[str, ...]] = [_HEAD]
    for each in measured:
        shown = msgspec.structs.replace(known[each.name], paddock=each.value, peer=each.peer)
        peer = "" if each.peer is None else f"{each.peer:.4g}"
        made.append((each.name, f"{each.value:.4g} {shown.unit}", peer, shown.ratio(), shown.target, shown.verdict().strip("*"), each.note))
    return made


def save(part: str, measured: Sequence[Figure], about: Circumstances, *, quick: bool) -> Path:
    """Write the file of a run."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{part}.json"
    found = {
        "part": part,
        "measured": datetime.date.today().isoformat(),
        "code": about.code,
        "host": about.host,
        "load": about.load,
        "disturbed": not about.is_good,
        "quick": quick,
        "figures": [{"name": each.name, "value": each.value, "peer": each.peer, "note": each.note} for each in measured],
    }
    path.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")
    return path


def is_quick(part: str) -> bool:
    """Return whether the figures in `results.toml` are those of a quick run."""
    return any("--quick" in run.command for run in pages.runs() if run.part == part)


def write(part: str, measured: Sequence[Figure], about: Circumstances) -> None:
    """Put a run into `results.toml`."""
    text = pages.RESULTS.read_text()
    pages.RESULTS.write_text(merged(text, part, measured, about, datetime.date.today()))


def merged(text: str, part: str, measured: Sequence[Figure], about: Circumstances, today: datetime.date) -> str:
    """The text of `results.toml` with a run in it. A disturbed one leaves good ones as they are, and raises if there are no others."""
    rows(part, measured)
    head, *blocks = re.split(r"^(?=\[\[run\]\]$)", text, flags=re.MULTILINE)
    changed = 0
    for at, block in enumerate(blocks):
        (run,) = pages.decoded(block)
        if run.part == part and (about.is_good or not run.is_good):
            blocks[at] = _with(block, {each.name: each for each in measured}, about, today)
            changed += 1
    if not changed:
        why = f"others used {about.load} processors, and the figures there were measured without"
        raise BenchError(f"not written: {why}; try again at a quiet moment")
    return head + "".join(blocks)


def _with(block: str, measured: dict[str, Figure], about: Circumstances, today: datetime.date) -> str:
    said = {"measured": today.isoformat(), "host": f'"{about.host}"', "code": f'"{about.code}"', "load": f"{about.load}"}
    block = re.sub(r"^(code|load) = .*\n", "", block, flags=re.MULTILINE)
    block = re.sub(r"^measured = .*$", f"measured = {said['measured']}", block, flags=re.MULTILINE)
    block = re.sub(
        r"^host = .*$", lambda _: f"host = {said['host']}\ncode = {said['code']}\nload = {said['load']}", block, flags=re.MULTILINE
    )
    lines = block.splitlines(keepends=True)
    for at, line in enumerate(lines):
        if (found := re.match(r'\s*\{ name = "([^"]+)"', line)) is not None:
            each = measured[found[1]]
            line = re.sub(r"paddock = [\d.]+", f"paddock = {_number(each.value)}", line)
            lines[at] = line if each.peer is None else re.sub(r"peer = [\d.]+", f"peer = {_number(each.peer)}", line)
    return "".join(lines)


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 else f"{float(f'{value:.4g}'):g}"
