"""Manifests beside what a server has of them: the server merges each object as it would apply it, and writes nothing."""

from collections.abc import Iterable, Sequence

import msgspec

from paddock.base.errors import PaddockError
from paddock.base.jsondata import Data
from paddock.fleet.documents.inputobjects import InputObjects, collected
from paddock.fleet.documents.objects import InputObject
from paddock.fleet.documents.planlines import REFUSED, PlanLine
from paddock.fleet.machines import edits
from paddock.fleet.servers import objectwrites
from paddock.fleet.servers.discovery import KindDiscovery
from paddock.fleet.servers.session import ServerSession
from paddock.kubernetes import admission
from paddock.kubernetes.client.options import WriteOptions
from paddock.kubernetes.schema.kind import AdmissionSettings


class ServerSides(msgspec.Struct, frozen=True):
    """Objects as the server has them and as they would be, without status; `whole` has the latter with it. `refused` are its refusals."""

    old: InputObjects
    new: InputObjects
    whole: InputObjects
    refused: tuple[PlanLine, ...]


async def sides(session: ServerSession, subjects: Sequence[InputObject], settings: AdmissionSettings) -> ServerSides:
    """Return both sides of a plan. Fields that other managers have set are refusals, as they are of `paddock apply`."""
    discovery = KindDiscovery(session.client)
    old: list[InputObject] = []
    made: list[tuple[InputObject, Data]] = []
    refused: list[PlanLine] = []
    for subject in subjects:
        try:
            kind, data = await objectwrites.located(session, discovery, subject.data)
            before = await session.client.find(kind.target, objectwrites.key_of(data))
            made.append((subject, await session.client.apply(kind.target, data, WriteOptions(dry_run=True))))
        except PaddockError as error:
            refused.append(PlanLine(subject.document.source, *subject.document.start, REFUSED, subject.title, "", str(error)))
            continue
        if before is not None:
            old.append(_holding(subject, edits.written(before), settings))
    new = _collected([_holding(subject, edits.written(data), settings) for subject, data in made])
    return ServerSides(_collected(old), new, merged(made, settings), tuple(refused))


def merged(objects: Iterable[tuple[InputObject, Data]], settings: AdmissionSettings) -> InputObjects:
    """Return objects of an input as the server would store them."""
    return _collected([_holding(subject, data, settings) for subject, data in objects])


def _collected(subjects: Sequence[InputObject]) -> InputObjects:
    """The server has judged these already."""
    return collected(subjects, lambda _: None)


def _holding(subject: InputObject, data: Data, settings: AdmissionSettings) -> InputObject:
    return InputObject(subject.document.holding(data), admission.admit(data, settings))
