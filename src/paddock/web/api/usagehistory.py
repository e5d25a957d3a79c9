"""`GET machines/PLACE/usage`: the use of a machine over time, as Paddock's own server keeps it."""

from typing import Literal, get_args

import msgspec

from paddock.fleet.machines.writing import SUBRESOURCES
from paddock.kubernetes.client.errors import Forbidden, MethodNotAllowed, NotFound, Unavailable
from paddock.web.answers.machine import WebUsageSeries
from paddock.web.routes import WebRefusal, WebRequest, WebRoute

Range = Literal["1h", "24h", "7d"]
_NOT_KEPT = "this server keeps no history of use: the chart shows what this page saw since it was opened"


class _Series(msgspec.Struct, frozen=True):
    """The answer of the server."""

    range: Range
    step: int
    times: list[int]
    series: dict[str, list[float | None]]


async def usage(request: WebRequest) -> WebUsageSeries:
    """Return the series of a range."""
    wanted = request.query.get("range", "1h")
    if wanted not in get_args(Range):
        raise WebRefusal(400, f'there is no range "{wanted}"', fix=f"the ranges are {', '.join(get_args(Range))}")
    machine = await request.machine()
    # A VirtualMachine keeps its history from run to run.
    key = machine.vm_key or machine.vmi_key
    if key is None:
        return _nothing(wanted, "the machine has no VirtualMachine on this server")
    plural = "virtualmachines" if machine.vm_key is not None else "virtualmachineinstances"
    path = f"{SUBRESOURCES}/namespaces/{key.namespace}/{plural}/{key.name}/usagehistory"
    try:
        answer = await request.session.client.request("GET", path, (("range", wanted),))
        found = msgspec.json.decode(answer, type=_Series)
    except (NotFound, MethodNotAllowed, Unavailable, msgspec.MsgspecError):
        return _nothing(wanted, _NOT_KEPT)
    except Forbidden as error:
        return _nothing(wanted, f"your rights do not allow it: {error.what}")
    return WebUsageSeries(range=found.range, step=found.step, times=found.times, series=found.series, missing="")


def _nothing(wanted: str, missing: str) -> WebUsageSeries:
    return WebUsageSeries(range=wanted, step=0, times=[], series={}, missing=missing)  # type: ignore[arg-type]  # checked above


ROUTES = (WebRoute("GET", "machines/PLACE/usage", usage),)
