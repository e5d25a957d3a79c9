"""Puts the series of machines on the server's page: one call."""

from paddock.app.metrics.collector import MetricsCollector
from paddock.app.metrics.selection import PARAMETER, selected
from paddock.server.api import Api
from paddock.server.context import User
from paddock.server.edge.http import Answer, HttpRequest, HttpResponse

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
