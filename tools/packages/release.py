"""`make release`: everything that a release consists of, in dist/. It tags nothing unless it is asked to, and never publishes."""

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tomllib
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tools.packages import deb, wheel

ROOT = Path(__file__).resolve().parents[2]
_SECTION = re.compile(r"^## (?P<title>.+)$", re.MULTILINE)
_UNRELEASED = "(not released yet)"
_PINNED = re.compile(
    r"^(?P<name>[\w.-]+)==(?P<version>\S+?)(?:\s*;[^\\\n]*)?\s*\\?$(?P<hashes>(?:\n\s+--hash=\S+(?:\s*\\)?)*)", re.MULTILINE
)


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
    made += [_write(output / f"paddock-{version}.cdx.json", json.dumps(bill(version), indent=2) + "\n")]
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
    if _git("status", "--porcelain", "--untracked-files=no"):
        yield "the checkout has changes: commit them"
    if _git("tag", "--list", f"v{version}"):
        yield f"there is a tag v{version} already: raise the version in pyproject.toml"


def _git(*words: str) -> str:
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True).stdout.strip()


def bill(version: str) -> Mapping[str, Any]:
    """Return the software bill of materials (CycloneDX 1.5) of the wheel with what it needs at run time, as the lock pins it."""
    components = [
        _component(match) for match in _PINNED.finditer((ROOT / "requirements.lock").read_text()) if match["name"] != "setuptools"
    ]
    commit, own = _git("rev-parse", "HEAD"), f"pkg:pypi/paddock@{version}"
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{own}?commit={commit}')}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(wheel.commit_time(), UTC).isoformat(),
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": "paddock",
                "version": version,
                "purl": own,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
                "properties": [{"name": "paddock:commit", "value": commit}],
            },
        },
        "components": components,
        "dependencies": [{"ref": own, "dependsOn": [each["bom-ref"] for each in components]}],
    }


def _component(match: re.Match[str]) -> Mapping[str, Any]:
    purl = f"pkg:pypi/{match['name'].lower()}@{match['version']}"
    return {"type": "library", "bom-ref": purl, "name": match["name"], "version": match["version"], "purl": purl, "scope": "required"}


def _write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


if __name__ == "__main__":
    sys.exit(main())
