"""The condition of cloud-init: the end of its run, and the parts that failed."""

import json
import re
from typing import Any

from paddock.kubernetes.meta.conditions import Condition

TYPE = "CloudInitFinished"
RESULT, STATUS = "/run/cloud-init/result.json", "/run/cloud-init/status.json"
_MOST_CHARACTERS = 1000
_FINISHED = re.compile(r"Cloud-init v\. \S+ finished at")
_FAILED = re.compile(r"(?:Failed to run module|failed to run module|Running module) ([\w-]+)(?: \(.*?\) failed)?")


def from_agent(result: str, status: str) -> Condition | None:
    """From its two files; None while it has not said anything. Both come from the guest, so nothing about them is taken for granted."""
    said, stages = _object(result), _object(status)
    if said is None:
        stage = _at(stages, "v1", "stage")
        if stages is None:
            return None
        return Condition(
            type=TYPE, status="Unknown", reason="Running", message=f"cloud-init is at {_clean(stage)}" if stage else "cloud-init runs"
        )
    errors = _at(said, "v1", "errors")
    if isinstance(errors, list) and errors:
        return _failed("; ".join(_clean(each) for each in errors), stages)
    return Condition(type=TYPE, status="True", reason="Done")


def from_serial(log: str) -> Condition | None:
    """From what is on the serial console, for guests without an agent."""
    failed = list(dict.fromkeys(match[1] for match in _FAILED.finditer(log) if "failed" in match[0].lower()))
    if failed:
        return Condition(type=TYPE, status="False", reason="ModuleFailed", message=f"failed: {', '.join(_clean(each) for each in failed)}")
    return Condition(type=TYPE, status="True", reason="Done") if _FINISHED.search(log) else None


def _failed(text: str, stages: dict[str, Any] | None) -> Condition:
    where = [
        name
        for name in ("init-local", "init", "modules-config", "modules-final")
        if isinstance(_at(stages, "v1", name, "errors"), list) and _at(stages, "v1", name, "errors")
    ]
    place = f"{', '.join(where)}: " if where else ""
    return Condition(type=TYPE, status="False", reason="ModuleFailed", message=(place + text)[:_MOST_CHARACTERS])


def _object(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _at(found: Any, *path: str) -> Any:
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _clean(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return "".join(each if each.isprintable() else " " for each in text)[:_MOST_CHARACTERS]
