"""Puts the series of machines on the server's page: one call."""

from collections.abc import Collection, Iterator

from paddock.app.metrics.collector import MetricsCollector
from paddock.server.api import Api
from paddock.server.context import User
from paddock.server.edge.http import Answer, HttpRequest, HttpResponse

PARAMETER = "name[]"
_PARTS = ("_bucket", "_sum", "_count")


def selected(text: str, names: Collection[str]) -> str:
    """Return the lines of these families; a name may also be that of a part of a histogram."""
    wanted = {*names, *(name.removesuffix(part) for name in names for part in _PARTS)}
    return "".join(f"{line}\n" for line in _lines(text, wanted))


def _lines(text: str, names: Collection[str]) -> Iterator[str]:
    taken = False
    for line in text.splitlines():
        if line.startswith("# HELP "):
            taken = line.split(" ", 3)[2] in names
        if taken:
            yield line


PATH = "/metrics"


def install(api: Api, collector: MetricsCollector) -> None:
    """From now on the page has both; who may read it is decided as before."""
    server = api.paths[PATH]

    async def answer(request: HttpRequest, user: User) -> Answer:
        page = await server(request, user)
        if not isinstance(page, HttpResponse) or page.status != 200:
            return page
        names = request.query.get(PARAMETER) or ()
        text = page.body.decode() + await collector.text(names)
        return HttpResponse(page.status, (selected(text, names) if names else text).encode(), page.headers)

    api.paths[PATH] = answer
