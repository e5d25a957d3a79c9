"""`GET machines/PLACE/log` and `…/screenshot`: what a guest wrote, and what its display shows."""

import re

from paddock.fleet.guests import guestlogs
from paddock.fleet.guests.guest import GuestAccess, NotRunning, check_running
from paddock.fleet.machines import finding
from paddock.kubernetes.client.errors import BadRequest, Conflict, Unavailable
from paddock.web.routes import WebBytes, WebRefusal, WebRequest, WebRoute

MOST_BYTES = 256 << 10
_KINDS = ("console", "boot", "cloud-init")
# A login prompt ends the boot: what follows is a session of somebody.
_PROMPT = re.compile(rb"^[^\r\n]{0,80}login: ?", re.MULTILINE)


async def log(request: WebRequest) -> WebBytes:
    """Return a log as text, without what would act on a terminal."""
    kind = request.query.get("kind", "console")
    if kind not in _KINDS:
        raise WebRefusal(400, f'there is no log "{kind}"', fix=f"the logs are {', '.join(_KINDS)}")
    guest = await _guest(request, "read a log")
    if kind == "cloud-init":
        check_running(guest, "read cloud-init's logs")
        parts = await guestlogs.cloud_init(guest)
        data = b"\n".join(f"--- {path}\n".encode() + text for path, text in parts)
    else:
        data = await guestlogs.boot(guest)
        if kind == "boot":
            data = until_login(data)
    return WebBytes(guestlogs.cleaned(tail(data)))


def until_login(data: bytes) -> bytes:
    """Return the log up to the first prompt for a login, with that."""
    found = _PROMPT.search(data)
    return data if found is None else data[: found.end()]


def tail(data: bytes) -> bytes:
    """Return the end of a log, from the beginning of a line on."""
    if len(data) <= MOST_BYTES:
        return data
    end = data[-MOST_BYTES:]
    return end.partition(b"\n")[2] or end


async def screenshot(request: WebRequest) -> WebBytes:
    """Return a picture of the display as PNG; nothing (204) while there is none: the page asks at intervals, and a browser logs errors."""
    guest = await _guest(request, "take a picture of the display")
    try:
        check_running(guest, "take a picture of the display")
        return WebBytes(await guest.screenshot(), "image/png")
    except (NotRunning, BadRequest, Conflict, Unavailable):
        # Also while the virt-handler of the machine's node is away.
        return WebBytes(b"", "image/png", 204)


async def _guest(request: WebRequest, what: str) -> GuestAccess:
    machine = await request.machine()
    return GuestAccess(request.session.server, machine, machine.vmi_key or finding.needs_vm(machine, what))


ROUTES = (WebRoute("GET", "machines/PLACE/log", log), WebRoute("GET", "machines/PLACE/screenshot", screenshot))
