"""Results that hold for a state of an object: the same state, another one, and an object that is gone or another one."""

import random

import orjson

from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.localtransport import LocalTransport
from paddock.kubernetes.client.target import Key, plain
from paddock.kubernetes.client.transport import TransportRequest, TransportResponse
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.informer import Informer, ListGate
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.memo import StateMemo
from tests import virtualtime

MAPS = plain("", "v1", "configmaps", "ConfigMap")
KEY = Key("default", "web")


async def _none(_: TransportRequest) -> TransportResponse:
    raise AssertionError("nothing is requested")


class Site:
    """A memo of an informer that changes when the test says so."""

    def __init__(self) -> None:
        machinery = Machinery(clock=virtualtime.Clock(), chance=random.Random(1))
        self.informer = Informer(Client(LocalTransport(_none)), MAPS, machinery=machinery, gate=ListGate())
        self.memo: StateMemo[tuple[str, ...], str] = StateMemo(self.informer)
        self.bring(1)

    def bring(self, revision: int, uid: str = "one") -> None:
        metadata = {"name": KEY.name, "namespace": KEY.namespace, "uid": uid, "resourceVersion": str(revision)}
        self.informer._take("MODIFIED", CachedObject.of(orjson.dumps({"metadata": metadata})))

    def remove(self) -> None:
        seen = self.informer.cache.get(KEY)
        assert seen is not None
        self.informer._take("DELETED", seen)


def test_a_result_holds_as_long_as_its_state_is_the_same() -> None:
    site = Site()
    assert site.memo.get(KEY, ("1",)) is None
    assert site.memo.put(KEY, ("1",), "quiet") == "quiet"
    site.bring(2)
    assert site.memo.get(KEY, ("1",)) == "quiet"
    assert dict(site.memo.items()) == {KEY: (("1",), "quiet")}
    assert site.memo.get(KEY, ("2",)) is None
    assert not site.memo.items()


def test_a_result_goes_with_its_object() -> None:
    site = Site()
    site.memo.put(KEY, ("1",), "quiet")
    site.remove()
    assert not site.memo.items()
    site.memo.put(KEY, ("1",), "quiet")
    assert not site.memo.items()


def test_a_result_is_not_that_of_another_object_of_the_name() -> None:
    site = Site()
    site.memo.put(KEY, ("1",), "quiet")
    site.bring(2, "two")
    assert not site.memo.items()
