"""Errors as the page shows them."""

import msgspec

from paddock.base.errors import PaddockError, Transient
from paddock.fleet.guests.guest import NotRunning
from paddock.fleet.machines.finding import AmbiguousMachine, MachineNotFound
from paddock.kubernetes.client.errors import ApiError, UndeclaredFields, Unreachable
from paddock.web.answers.rows import WebErrorBody
from paddock.web.routes import WebRefusal

_BAD_REQUEST, _NOT_FOUND, _BAD_GATEWAY, _DEFECT = 400, 404, 502, 500


class _Envelope(msgspec.Struct, frozen=True):
    error: WebErrorBody


def body_of(error: Exception) -> WebErrorBody:
    """Return an error for the page. `code` is the status of the answer, too."""
    if isinstance(error, PaddockError):
        return WebErrorBody(message=error.what, why=error.why, fix=error.fix, code=status_of(error))
    if isinstance(error, OSError):
        return WebErrorBody(message=str(error), why="", fix="", code=_BAD_GATEWAY)
    words = " ".join(str(error).split())
    text = f"a defect of Paddock: {type(error).__name__}: {words}"
    return WebErrorBody(message=text, why="", fix="report it with the log of the console", code=_DEFECT)


def status_of(error: PaddockError) -> int:
    """Return the HTTP status of an error: the API server's own where it answered."""
    if isinstance(error, WebRefusal):
        return error.status
    if isinstance(error, UndeclaredFields):
        # kube-apiserver calls its answer to an apply an internal error; what is wrong is the object.
        return _BAD_REQUEST
    if isinstance(error, ApiError):
        return error.code if error.code >= _BAD_REQUEST else _BAD_GATEWAY
    if isinstance(error, MachineNotFound):
        return _NOT_FOUND
    if isinstance(error, AmbiguousMachine | NotRunning):
        return 409
    if isinstance(error, Unreachable):
        return _BAD_GATEWAY
    return 503 if isinstance(error, Transient) else _BAD_REQUEST


def encoded(body: WebErrorBody) -> bytes:
    """Return the JSON of an error."""
    return msgspec.json.encode(_Envelope(body))
