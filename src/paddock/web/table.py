"""The routes of the console's API: those of every module of `web/api`."""

from paddock.web.api import (
    actions,
    apply,
    compose,
    convert,
    detail,
    events,
    history,
    host,
    kindrights,
    kinds,
    logs,
    me,
    objects,
    plan,
    sources,
    usagehistory,
    why,
)
from paddock.web.routes import RouteTable

_MODULES = (
    actions,
    apply,
    compose,
    convert,
    detail,
    events,
    history,
    host,
    kindrights,
    kinds,
    logs,
    me,
    objects,
    plan,
    sources,
    usagehistory,
    why,
)


def table() -> RouteTable:
    return RouteTable(route for module in _MODULES for route in module.ROUTES)
