"""What apt's lists led to, remembered for a day: to ask apt takes seconds of a processor, and the answer is nearly always the same.

An answer holds as long as apt's lists, its settings and what is installed were not touched, and the question is the same.
"""

import hashlib
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path

# As long as lists of our own are held for fresh.
_FRESH_SECONDS = 86400.0
_APT = (
    *("/var/lib/apt/lists", "/var/lib/dpkg/status", "/etc/apt/apt.conf", "/etc/apt/apt.conf.d"),
    *("/etc/apt/sources.list", "/etc/apt/sources.list.d", "/etc/apt/preferences", "/etc/apt/preferences.d"),
)


def remembered(cache: Path, name: str, question: Sequence[str], apt: Sequence[str] = _APT) -> str:
    """The answer to a question, or an empty text when apt has to be asked."""
    try:
        path = _path(cache, name)
        said = json.loads(path.read_text())
        age = time.time() - path.stat().st_mtime
    except (OSError, ValueError):
        return ""
    holds = isinstance(said, dict) and said.get("question") == _digest(question, apt) and 0 <= age < _FRESH_SECONDS
    return str(said.get("answer", "")) if holds else ""


def remember(cache: Path, name: str, question: Sequence[str], answer: str, apt: Sequence[str] = _APT) -> None:
    """Keep an answer. The caller holds the cache's lock."""
    path = _path(cache, name)
    new = path.with_suffix(".new")
    new.write_text(json.dumps({"question": _digest(question, apt), "answer": answer}))
    os.replace(new, path)


def _path(cache: Path, name: str) -> Path:
    return cache / f"answer-{name}.json"


def _digest(question: Sequence[str], apt: Sequence[str]) -> str:
    """The question and when each of apt's files was last changed."""
    said = [list(question), [[str(path), *_changed(path)] for place in apt for path in _within(Path(place))]]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def _within(place: Path) -> list[Path]:
    return [place, *sorted(path for path in place.iterdir() if path.is_file())] if place.is_dir() else [place]


def _changed(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size
