"""`virtualmachineinstances/guestfile`: a part of a file of a guest, by its agent. It is Paddock's own; KubeVirt has none.

The body `{"path": "/etc/hosts", "offset": 0, "count": 65536}` reads: the answer is `{"data": "<Base64>", "eof": true}`. With `"data"`
it writes, at offset 0 over whatever was there. A request carries at most 1 MiB, and a long file takes several. The agent opens the file
anew for each. Paths are the guest's: they never name a file of the host.
"""

import base64

from paddock.app.subresources import queries
from paddock.app.subresources.guestexec import asked, part
from paddock.app.subresources.instances import InstanceFinder
from paddock.base.jsondata import Data
from paddock.kubernetes.meta import failure
from paddock.server.context import RequestContext
from paddock.server.edge.http import HttpResponse

MOST_BYTES = 1 << 20
_LONGEST_PATH = 4096


class GuestFiles:
    """Reads and writes files of guests."""

    def __init__(self, instances: InstanceFinder) -> None:
        self._instances = instances

    async def transfer(self, call: RequestContext) -> HttpResponse:
        """Read or write one part."""
        body = queries.needed(call.request)
        path = _path(queries.text(body, "path"))
        offset = _size(body, "offset", 0, 2**63 - 1)
        writes = body.get("data") is not None
        data = part(body, "data", MOST_BYTES)
        count = _size(body, "count", MOST_BYTES, MOST_BYTES)
        instance = self._instances.asked(call)
        agent = self._instances.with_agent(instance).agent
        if writes:
            await asked(instance, agent.write_file(path, offset, data))
            return queries.said({"count": len(data)})
        found, is_end = await asked(instance, agent.read_file(path, offset, count))
        return queries.said({"data": base64.b64encode(found).decode(), "eof": is_end})


def _path(path: str) -> str:
    if not path or "\0" in path or len(path.encode("utf-8", "replace")) > _LONGEST_PATH:
        raise failure.bad_request(f"path must name a file of the guest, in at most {_LONGEST_PATH} bytes")
    return path


def _size(body: Data, name: str, usual: int, most: int) -> int:
    value = queries.seconds(body, name)
    value = usual if value is None else value
    if not 0 <= value <= most:
        raise failure.bad_request(f"{name} is {value}: give 0 to {most}")
    return value
