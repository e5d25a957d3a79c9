"""Golden files: text that lies beside its test and is rewritten by ``make golden``.

A test asks for the ``golden`` fixture and calls ``golden("web.yaml", text)``; the name is relative to the test's own
folder. Reviewers read the difference of the file, so its text must be stable: no times, no paths of this machine.
"""

from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True, slots=True)
class Golden:
    """Compares texts with the files in one folder, or rewrites the files when the run asks for that."""

    folder: Path
    update: bool

    def __call__(self, name: str, text: str) -> None:
        path = self.folder / name
        old = path.read_text(encoding="utf-8") if path.exists() else None
        if old == text:
            return
        if self.update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        if old is None:
            pytest.fail(f"golden file {path} does not exist; `make golden` writes it")
        # A plain assert lets pytest print the difference line by line.
        assert text.splitlines() == old.splitlines(), f"{path} differs; `make golden` rewrites it"
        pytest.fail(f"{path} differs in its line ends only; `make golden` rewrites it")
