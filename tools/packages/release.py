"""`make release`: everything that a release consists of, in dist/. It tags nothing unless it is asked to, and never publishes."""

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tools.packages import bill, deb, wheel

ROOT = Path(__file__).resolve().parents[2]
_SECTION = re.compile(r"^## (?P<title>.+)$", re.MULTILINE)
_UNRELEASED = "(not released yet)"


def main(given: list[str] | None = None) -> int:
    """Build, and tag if it is asked for."""
    options = argparse.ArgumentParser(prog="python -m tools.packages.release", description=__doc__)
    options.add_argument("--tag", action="store_true", help="make the tag vVERSION of a clean checkout, whose changelog has the version")
    options.add_argument("--output", type=Path, default=ROOT / "dist", help="directory to write to (default: dist)")
    options.add_argument("--no-deb", action="store_true", help="leave the Debian package out")
    parsed = options.parse_args(given)
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    notes, released = section((ROOT / "CHANGELOG.md").read_text(), version)
    problems = list(_problems(version, released=released))
    if parsed.tag and problems:
        print("".join(f"release: {problem}\n" for problem in problems), file=sys.stderr, end="")
        return 1
    output: Path = parsed.output
    output.mkdir(parents=True, exist_ok=True)
    made = [wheel.source_distribution(output), wheel.build(output)]
    if not parsed.no_deb:
        made.append(deb.build("3.11", output))
    made += [_write(output / f"paddock-{version}.cdx.json", json.dumps(bill.wheel_bill(version), indent=2) + "\n")]
    made += [_write(output / f"paddock-{version}.md", notes)]
    sums = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(made))
    made += [_write(output / "SHA256SUMS", sums)]
    print("".join(f"{path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}\n" for path in made), end="")
    if not parsed.tag:
        print("".join(f"release: a tag needs this first: {problem}\n" for problem in problems), end="")
        print(f"release: no tag was made; RELEASE=1 makes v{version}")
        return 0
    subprocess.run(["git", "-C", str(ROOT), "tag", "-a", f"v{version}", "-F", str(output / f"paddock-{version}.md")], check=True)
    print(f"release: tagged v{version}; publish with `git push origin v{version}` and upload what SHA256SUMS names")
    return 0


def section(changelog: str, version: str) -> tuple[str, bool]:
    """Return the changelog's section of a version, and whether it has a day. Raises SystemExit without one."""
    found = list(_SECTION.finditer(changelog))
    for each, after in zip(found, [*found[1:], None], strict=True):
        if each["title"].split()[0] == version:
            text = changelog[each.start() : after.start() if after else None]
            return text.strip() + "\n", _UNRELEASED not in each["title"]
    raise SystemExit(f"release: CHANGELOG.md has no section {version}")


def _problems(version: str, *, released: bool) -> Iterator[str]:
    if not released:
        yield f'CHANGELOG.md calls {version} "not released yet": write the day'
    if bill.git("status", "--porcelain", "--untracked-files=no"):
        yield "the checkout has changes: commit them"
    if bill.git("tag", "--list", f"v{version}"):
        yield f"there is a tag v{version} already: raise the version in pyproject.toml"


def _write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


if __name__ == "__main__":
    sys.exit(main())
