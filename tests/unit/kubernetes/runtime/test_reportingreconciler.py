"""The report at the end of a pass: once, also after an error, and not where another pass has to decide first."""

from typing import cast

import pytest

from paddock.base.errors import PaddockError
from paddock.kubernetes.client.errors import Conflict, StatusDetails, Unreachable
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, Outcome, again
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.kindreconciler import ReportingReconciler
from tests.coroutines import scripted

SEEN = CachedObject.from_data(
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default", "uid": "1", "resourceVersion": "1"}}
)


class NamePass(list[str]):
    """The name of an object."""


class NameReconciler(ReportingReconciler[NamePass]):
    """Notes its steps, and fails where it is to."""

    def __init__(self, error: Exception | None = None, *, idle: bool = False) -> None:
        super().__init__(cast(Informer, None))
        self.steps: list[str] = []
        self._error = error
        self._idle = idle

    async def begin(self, seen: CachedObject) -> NamePass | Outcome:
        return again(5) if self._idle else NamePass([seen.meta.name])

    async def act(self, name_pass: NamePass) -> Outcome:
        self.steps.append(f"act {name_pass[0]}")
        if self._error is not None:
            raise self._error
        return again(3)

    async def report(self, name_pass: NamePass, error: PaddockError | None) -> None:
        self.steps.append(f"report {error or 'no error'}")

    async def conclude(self, name_pass: NamePass) -> None:
        self.steps.append("conclude")


@scripted
async def test_a_pass_acts_and_reports_and_concludes() -> None:
    reconciler = NameReconciler()
    assert await reconciler.work(SEEN) == again(3)
    assert reconciler.steps == ["act a", "report no error", "conclude"]


@scripted
async def test_an_error_is_reported_and_raised() -> None:
    reconciler = NameReconciler(PaddockError("the disk is full"))
    with pytest.raises(PaddockError, match="the disk is full"):
        await reconciler.work(SEEN)
    assert reconciler.steps == ["act a", "report the disk is full"]


@pytest.mark.parametrize("error", [Conflict(409, StatusDetails("it has moved")), Unreachable("no server", sent=False), ValueError("a bug")])
@scripted
async def test_what_another_pass_decides_is_not_reported(error: Exception) -> None:
    reconciler = NameReconciler(error)
    with pytest.raises(type(error)):
        await reconciler.work(SEEN)
    assert reconciler.steps == ["act a"]


@scripted
async def test_nothing_to_do_reports_nothing() -> None:
    reconciler = NameReconciler(idle=True)
    assert await reconciler.work(SEEN) == again(5)
    assert reconciler.steps == []


@scripted
async def test_a_key_without_an_object_is_forgotten() -> None:
    reconciler = NameReconciler()
    assert await reconciler.missing(Key("default", "a")) == DONE
