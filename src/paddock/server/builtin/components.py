"""`v1 ComponentStatus`: how the parts of the server are. Read only, and made when somebody asks; deprecated upstream, too."""

from collections.abc import Awaitable, Callable
from typing import Any

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import failure
from paddock.server.builtin.tables import Cells, name_of
from paddock.server.context import RequestContext, ServerParts
from paddock.server.edge.http import HttpResponse
from paddock.server.objects.encoding import encode
from paddock.server.representation import answer, form_of
from paddock.server.store.contract import StoredValue, StoreKey

VERBS = ("get", "list")
DEPRECATION = "v1 ComponentStatus is deprecated in v1.19+"
_PLURAL = "componentstatuses"
Check = Callable[[], str]


def handlers(parts: ServerParts, store: Check) -> dict[tuple[str, str, str, str], Callable[[RequestContext], Awaitable[HttpResponse]]]:
    """Return what answers reads. `store` says what is wrong with the store; the controllers run while the server does."""
    checks: dict[str, Check] = {"controller-manager": lambda: "", "etcd-0": store}

    def records() -> dict[str, StoredValue]:
        made = {name: encode(_status(name, check())) for name, check in checks.items()}
        return {name: StoredValue(StoreKey(_PLURAL, "", name), 0, value) for name, value in made.items()}

    async def get(call: RequestContext) -> HttpResponse:
        form = form_of(call.request)
        found = records().get(call.route.name)
        if found is None:
            raise failure.not_found(call.resource.about(call.route.name))
        return answer(form, parts.renderer(call.resource, form).one(await parts.served(call.resource, found.value)))

    async def list_(call: RequestContext) -> HttpResponse:
        form = form_of(call.request)
        return answer(form, parts.renderer(call.resource, form).many(list(records().values()), {"resourceVersion": ""}))

    return {("", _PLURAL, "", "get"): get, ("", _PLURAL, "", "list"): list_}


def _status(name: str, wrong: str) -> Data:
    condition = {"type": "Healthy", "status": "False", "error": wrong} if wrong else {"type": "Healthy", "status": "True", "message": "ok"}
    return {"apiVersion": "v1", "kind": "ComponentStatus", "metadata": {"name": name}, "conditions": [condition]}


def _cells(data: Data, now: float) -> list[Any]:
    condition: Data = next(iter(data.get("conditions") or ()), {})
    state = {"True": "Healthy", "False": "Unhealthy"}.get(condition.get("status", ""), "Unknown")
    return [name_of(data), state, condition.get("message") or "", condition.get("error") or ""]


CELLS: dict[tuple[str, str], Cells] = {("", "ComponentStatus"): _cells}
