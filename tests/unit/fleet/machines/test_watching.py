"""Machines that are followed, whatever the server answers."""

import asyncio
from typing import NoReturn, cast

import pytest

from paddock.base.errors import PaddockError
from paddock.fleet.machines.watching import MachineWatch
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import ApiError, Forbidden, NotFound, StatusDetails, Unauthorized, Unreachable
from tests.coroutines import timeless


class _RefusingClient:
    """A client of a server that answers every list with an error."""

    def __init__(self, error: PaddockError) -> None:
        self._error = error

    async def list(self, *_: object) -> NoReturn:
        raise self._error


def _watch(error: PaddockError) -> MachineWatch:
    return MachineWatch(cast(Client, _RefusingClient(error)), "default", "")


@pytest.mark.parametrize(("refusal", "code"), [(Forbidden, 403), (NotFound, 404)])
@timeless
async def test_a_refusal_is_an_answer(refusal: type[ApiError], code: int) -> None:
    pictures = _watch(refusal(code, StatusDetails(message="no"))).pictures(1.0)
    assert await asyncio.wait_for(anext(pictures), 10) == []


@timeless
async def test_a_user_whom_the_server_does_not_know_hears_it() -> None:
    """An empty table would say that there is no machine."""
    pictures = _watch(Unauthorized(401, StatusDetails(message="no"))).pictures(1.0)
    with pytest.raises(Unauthorized):
        await asyncio.wait_for(anext(pictures), 10)


@timeless
async def test_a_server_that_is_away_has_no_picture_yet() -> None:
    pictures = _watch(Unreachable("the server is away", sent=False)).pictures(1.0)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(pictures), 100)
