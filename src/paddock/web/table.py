"""The routes of the console's API: those of every module of `web/api`."""

from paddock.web.api import kinds, me
from paddock.web.routes import RouteTable


def table() -> RouteTable:
    """Return all routes."""
    return RouteTable((*me.ROUTES, *kinds.ROUTES))
