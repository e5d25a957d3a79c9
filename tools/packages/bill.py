"""Software bills of materials in CycloneDX 1.5."""

import re
import subprocess
import uuid
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tools.packages import wheel

ROOT = Path(__file__).resolve().parents[2]
_PINNED = re.compile(
    r"^(?P<name>[\w.-]+)==(?P<version>\S+?)(?:\s*;[^\\\n]*)?\s*\\?$(?P<hashes>(?:\n\s+--hash=\S+(?:\s*\\)?)*)", re.MULTILINE
)


def wheel_bill(version: str) -> Mapping[str, Any]:
    """Return the bill of the wheel with what it needs at run time, as the lock pins it."""
    own = f"pkg:pypi/paddock@{version}"
    subject = {"type": "application", "bom-ref": own, "name": "paddock", "purl": own}
    return bill(version, subject, locked())


def locked(without: Collection[str] = ()) -> Sequence[Mapping[str, Any]]:
    """Return the packages of the lock that run, but those that are named."""
    found = _PINNED.finditer((ROOT / "requirements.lock").read_text())
    return [_component(match) for match in found if match["name"] not in ("setuptools", *without)]


def bill(version: str, subject: Mapping[str, Any], components: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return a bill of a subject of this commit."""
    commit, own = git("rev-parse", "HEAD"), subject["bom-ref"]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{own}?commit={commit}')}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(wheel.commit_time(), UTC).isoformat(),
            "component": {
                **subject,
                "version": version,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
                "properties": [{"name": "paddock:commit", "value": commit}],
            },
        },
        "components": list(components),
        "dependencies": [{"ref": own, "dependsOn": [each["bom-ref"] for each in components]}],
    }


def git(*words: str) -> str:
    """Return what git prints about this checkout."""
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True).stdout.strip()


def _component(match: re.Match[str]) -> Mapping[str, Any]:
    purl = f"pkg:pypi/{match['name'].lower()}@{match['version']}"
    return {"type": "library", "bom-ref": purl, "name": match["name"], "version": match["version"], "purl": purl, "scope": "required"}
