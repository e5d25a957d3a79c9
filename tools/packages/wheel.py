"""The wheel and the source distribution of this checkout."""

import itertools
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Collection
from pathlib import Path

from paddock.base.images.build import places

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^[\w.-]+==", re.MULTILINE)


def build(output: Path) -> Path:
    """Return the wheel, built from the files that git knows: what lies around in a checkout stays out."""
    output.mkdir(parents=True, exist_ok=True)
    source = source_distribution(output)
    with tempfile.TemporaryDirectory(prefix="paddock-wheel-") as folder:
        made = from_source(source, Path(folder))
        source.unlink()
        target = output / made.name
        target.write_bytes(made.read_bytes())
    return target


def source_distribution(output: Path) -> Path:
    """Return the source distribution. The backend collects the files in a folder of the checkout, so one build waits for another."""
    with places.alone(ROOT / ".cache", "sdist"):
        return _hook("build_sdist", ROOT, output)


def from_source(source: Path, output: Path) -> Path:
    """Return the wheel that a source distribution gives."""
    with tempfile.TemporaryDirectory(prefix="paddock-sdist-") as folder:
        subprocess.run(["tar", "-xzf", str(source), "-C", folder], check=True)
        return _hook("build_wheel", Path(folder) / source.name.removesuffix(".tar.gz"), output)


def _hook(name: str, folder: Path, output: Path) -> Path:
    # The hooks of PEP 517, called in a process of their own: the backend changes its folder and its modules.
    program = f"import sys; from setuptools import build_meta; print(build_meta.{name}(sys.argv[1]))"
    output.mkdir(parents=True, exist_ok=True)
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "SOURCE_DATE_EPOCH": str(commit_time()), "HOME": "/nonexistent"}
    done = subprocess.run(
        [sys.executable, "-c", program, str(output.absolute())], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"packages: {name} failed:\n{done.stderr[-2000:]}")
    return output / done.stdout.strip().splitlines()[-1]


def commit_time() -> int:
    """Return the time of the commit, which builds write in place of today's."""
    done = subprocess.run(["git", "-C", str(ROOT), "log", "-1", "--format=%ct"], capture_output=True, text=True, check=True)
    return int(done.stdout.strip())


def runtime_lock(folder: Path, without: Collection[str] = ()) -> Path:
    """Return the lock of what runs: requirements.lock without the build backend, and without the packages that are named."""
    text = (ROOT / "requirements.lock").read_text()
    starts = [match.start() for match in _BLOCK.finditer(text)] + [len(text)]
    blocks = [text[start:end] for start, end in itertools.pairwise(starts)]
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / "runtime.lock"
    target.write_text("".join(block for block in blocks if block.partition("==")[0] not in ("setuptools", *without)))
    return target


def names(archive: Path) -> list[str]:
    """Return the files of a wheel."""
    with zipfile.ZipFile(archive) as opened:
        return sorted(opened.namelist())
