"""`python -m tools.site`: builds the site into `build/site`, and fails for a broken link or a page that no menu leads to."""

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import yaml

from tools.site import local, redirects
from tools.site.navigation import menu
from tools.site.staging import stage

ROOT = Path(__file__).parents[2]
_LOCK = ROOT / "requirements-docs.lock"
_WORK = ROOT / ".cache" / "site"
_SETTINGS = Path(__file__).with_name("mkdocs.yml")
_FILES = tuple(Path(__file__).with_name(name) for name in ("paddock.css", "logo.svg", "favicon.svg"))
SITE = ROOT / "build" / "site"


def main() -> int:
    """Build the site."""
    python = _python()
    pages = _WORK / "pages"
    nav = menu((ROOT / "docs" / "README.md").read_text(encoding="utf-8"), stage(ROOT, pages))
    for file in _FILES:
        shutil.copyfile(file, pages / file.name)
    settings = _WORK / "mkdocs.yml"
    added = {"docs_dir": str(pages), "site_dir": str(SITE), "nav": nav}
    settings.write_text(f"{_SETTINGS.read_text(encoding='utf-8')}\n{yaml.safe_dump(added, sort_keys=False)}", encoding="utf-8")
    command = [str(python), "-m", "mkdocs", "build", "--strict", "--config-file", str(settings)]
    done = subprocess.run(command, check=False, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    if done.returncode == 0:
        redirects.write(SITE, redirects.moved())
        if remote := local.keep(SITE):
            print("the site loads what is elsewhere:", *remote, sep="\n", file=sys.stderr)
            return 1
        print(f"the site is in {SITE.relative_to(ROOT)}: open index.html")
    return done.returncode


def _python() -> Path:
    """Return the interpreter of an environment with MkDocs: one of its own, since nothing else needs those packages."""
    home = _WORK / "venv"
    stamp, wanted = home / "lock.sha256", hashlib.sha256(_LOCK.read_bytes()).hexdigest()
    if not stamp.exists() or stamp.read_text() != wanted:
        venv.create(home, clear=True, with_pip=True)
        subprocess.run([home / "bin" / "pip", "install", "--quiet", "--require-hashes", "-r", _LOCK], check=True)
        stamp.write_text(wanted)
    return home / "bin" / "python"


if __name__ == "__main__":
    sys.exit(main())
