"""What releases before that of the facts lack: parameters, content types and privileges that came later."""

from collections.abc import Mapping

from tests.kit.proxmox.access import Access
from tests.kit.proxmox.schema import Value

Release = tuple[int, int]
_UNKNOWN = "property is not defined in schema and the schema does not allow additional properties"
_QEMU = "/nodes/{node}/qemu"
# Parameters by their call, and the release that brought them.
_SINCE: Mapping[str, Mapping[str, Release]] = {
    f"POST {_QEMU}/{{vmid}}/status/stop": {"overrule-shutdown": (8, 2)},
    f"POST {_QEMU}": {"import-working-storage": (8, 3)},
    f"POST {_QEMU}/{{vmid}}/config": {"import-working-storage": (8, 3)},
    f"PUT {_QEMU}/{{vmid}}/config": {"import-working-storage": (8, 3)},
}
_UPLOADS = ("POST /nodes/{node}/storage/{storage}/upload", "POST /nodes/{node}/storage/{storage}/download-url")
# OVA files can be uploaded since 8.3, disk images since 8.4.
_OVA, _IMAGES = (8, 3), (8, 4)
# Since 9.0 the agent has privileges of its own.
AGENT_PRIVILEGES = (9, 0)


def parse(text: str) -> Release:
    """Return the numbers of "9.2"."""
    major, _, minor = text.partition(".")
    return int(major), int(minor)


def errors(release: Release, call: str, values: Mapping[str, Value]) -> dict[str, str]:
    """Return what an older release refuses of parameters that are valid today."""
    found = {name: _UNKNOWN for name, since in _SINCE.get(call, {}).items() if name in values and release < since}
    if call in _UPLOADS and values.get("content") == "import":
        if release < _OVA:
            found["content"] = "value 'import' does not have a value in the enumeration 'iso, vztmpl'"
        elif release < _IMAGES and not str(values.get("filename", "")).endswith(".ova"):
            found["filename"] = "invalid filename or wrong extension"
    return found


def use(access: Access, release: Release) -> None:
    """Give roles the privileges of a release: VM.Monitor stood for all that has to do with the agent."""
    access.renamed = {}
    if release < AGENT_PRIVILEGES:
        access.renamed = {"VM.GuestAgent": "VM.Monitor"}
        for name, privileges in access.roles.items():
            kept = {each for each in privileges if not each.startswith("VM.GuestAgent")}
            access.roles[name] = frozenset(kept | ({"VM.Monitor"} if "VM.GuestAgent.Unrestricted" in privileges else set()))
