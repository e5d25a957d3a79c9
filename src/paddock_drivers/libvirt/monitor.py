"""Snapshots that libvirt has no call for: of the disks alone, inside their files, while the guest goes on.

QEMU takes them all at one moment. libvirt lets its clients speak to QEMU for that, and notes in its log that one did.
"""

import json
from collections.abc import Iterable
from typing import Any

import libvirt_qemu

from paddock.contract.errors import ErrorKind, ProviderError


def snapshot_disks(domain: Any, name: str, paths: Iterable[str]) -> None:
    """Take a snapshot inside the files of running disks. One of the name that nobody knows of is replaced. In a thread."""
    nodes = _nodes(domain, tuple(paths))
    left = [node for node, names in nodes.items() if name in names]
    for node in left:
        _ask(domain, "blockdev-snapshot-delete-internal-sync", {"device": node, "name": name})
    actions = [{"type": "blockdev-snapshot-internal-sync", "data": {"device": node, "name": name}} for node in nodes]
    _ask(domain, "transaction", {"actions": actions})


def _nodes(domain: Any, paths: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """The nodes of QEMU that have these files, each with the snapshots in its file."""
    found: dict[str, tuple[str, tuple[str, ...]]] = {}
    for each in _ask(domain, "query-named-block-nodes", {"flat": True}):
        if each.get("drv") != "qcow2":
            continue
        image = each.get("image") or {}
        path = next((text for text in (each.get("file"), image.get("filename")) if text in paths), None)
        if path is not None:
            found[path] = (each["node-name"], tuple(one.get("name", "") for one in image.get("snapshots") or ()))
    missing = next((path for path in paths if path not in found), None)
    if missing is not None:
        raise ProviderError(ErrorKind.INTERNAL, "the snapshot cannot be taken", why="QEMU does not have a disk that libvirt names")
    return dict(found.values())


def _ask(domain: Any, command: str, arguments: dict[str, Any]) -> Any:
    answer = json.loads(libvirt_qemu.qemuMonitorCommand(domain, json.dumps({"execute": command, "arguments": arguments}), 0))
    if "error" in answer:
        why = str(answer["error"].get("desc", ""))[:300]
        raise ProviderError(ErrorKind.INTERNAL, f"QEMU refuses {command}", why=why)
    return answer.get("return")
