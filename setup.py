"""Adds what pyproject.toml has no words for: the commit that is built, and the files that belong beside the package."""

import json
import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

ROOT = Path(__file__).resolve().parent
# Below src in a source distribution, and in the wheel; not in a checkout, which asks git.
STAMP = "paddock/base/build.json"


def stamp() -> str:
    """Return the stamp of this build: that of the source distribution, or git's commit."""
    kept = ROOT / "src" / STAMP
    if kept.exists():
        return kept.read_text()
    commit = _git("rev-parse", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no")
    return json.dumps({"commit": f"{commit}-dirty" if commit and changed else commit}) + "\n"


def _git(*words: str) -> str:
    # A checkout only: a source tree below somebody else's repository has no commit of its own.
    if not (ROOT / ".git").exists():
        return ""
    try:
        return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


class BuildWithCommit(build_py):
    """Writes the stamp into the package."""

    def run(self) -> None:
        """Build, and write the stamp."""
        super().run()
        if not self.editable_mode:
            target = Path(self.build_lib) / STAMP
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(stamp())


class SourceWithCommit(sdist):
    """Writes the stamp into the source distribution, so that a wheel built from it has the same commit."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        """Make the tree, and write the stamp."""
        super().make_release_tree(base_dir, files)
        (Path(base_dir) / "src" / STAMP).write_text(stamp())


def beside() -> list[tuple[str, list[str]]]:
    """Return the files that are installed below the prefix: man pages, completion, units, the charts."""
    shells = "src/paddock/cli/completion/shells"
    found = {
        "share/man/man1": sorted((ROOT / "deploy/man").glob("*.1")),
        "share/bash-completion/completions": [ROOT / shells / "bash/paddock"],
        "share/zsh/site-functions": [ROOT / shells / "zsh/_paddock"],
        "share/fish/vendor_completions.d": [ROOT / shells / "fish/paddock.fish"],
        "share/paddock/systemd/system": sorted((ROOT / "deploy/systemd/system").glob("*.service")),
        "share/paddock/systemd/user": sorted((ROOT / "deploy/systemd/user").glob("*.service")),
    }
    for folder in ("helm/kubevirt-operator", "helm/paddock", "kubevirt-operator", "kustomize"):
        for path in sorted((ROOT / "deploy" / folder).rglob("*")):
            if path.is_file():
                place = path.parent.relative_to(ROOT / "deploy").as_posix()
                found.setdefault(f"share/paddock/{place}", []).append(path)
    return [(place, [path.relative_to(ROOT).as_posix() for path in paths]) for place, paths in found.items()]


setup(cmdclass={"build_py": BuildWithCommit, "sdist": SourceWithCommit}, data_files=beside())
