"""What the two servers of a migration say to each other: frames of JSON over TLS 1.3, on which each side shows who it is.

    receive   the source describes its guest; the target answers where its QEMU listens, or what it lacks
              the connection stays: the target says when the guest is there, and drops a guest that is not if the source goes
    take      the source has given the guest up: is it the target's now?
    drop      the source keeps its guest

Each connection has one request. Lengths, times and the number of connections are bounded.
"""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Awaitable, Callable
from typing import Literal, Protocol, TypeVar

import msgspec

from paddock.base import tcp
from paddock.base.errors import PaddockError
from paddock.engine.machine.directory import decode_path, encode_path
from paddock.engine.machine.errors import RequestRefused, Unanswered
from paddock.engine.machine.livelinks import Credentials, ReceiverAddress
from paddock.engine.machine.livesource import GuestReceiver
from paddock.engine.machine.livetarget import LeavingGuest
from paddock.kubevirt.plan.migration.decentralized import PeerFacts

_LOG = logging.getLogger(__name__)
# The name in the certificate of a server that listens, whatever address it has.
NAME = "paddock-migrations"
_LONGEST = 1 << 20
_HANDSHAKE_SECONDS, _REQUEST_SECONDS = 10.0, 30.0
# A target starts a QEMU before it answers, or has to find out whether its guest is whole.
ANSWER_SECONDS = 60.0
_CONNECTIONS = 128
_Message = TypeVar("_Message", bound=msgspec.Struct)


class PeerRequest(msgspec.Struct, frozen=True):
    """A question of a source."""

    verb: Literal["receive", "take", "drop"]
    migration: str
    guest: LeavingGuest | None = None
    # PEM of the authority that signed what the source shows on QEMU's lines
    authority: str = ""
    source: PeerFacts = PeerFacts()
    # of a drop
    why: str = ""


class PeerReply(msgspec.Struct, frozen=True):
    """The answer of a target. `problem`: why not; `is_final`: asking again changes nothing."""

    problem: str = ""
    is_final: bool = False
    address: ReceiverAddress | None = None
    authority: str = ""
    target: PeerFacts = PeerFacts()
    # take: the guest is the target's; drop: it never will be; of a guest that comes: it is there
    yes: bool = False


class PeerTrust(Protocol):
    """Whom this server trusts now, and what it shows. Each raises `PaddockError`."""

    async def listening(self) -> ssl.SSLContext:
        """Return the side of TLS that listens."""

    async def calling(self) -> ssl.SSLContext:
        """Return the side of TLS that connects."""


class LineCredentials(Protocol):
    """What one side of one migration shows on the lines between the QEMUs."""

    # PEM of the certificate that the other side trusts
    authority: bytes

    def trusting(self, authority: bytes) -> Credentials:
        """Return them, with the authority of the other side."""


MakeCredentials = Callable[[Literal["source", "target"]], LineCredentials]


class NotYet(Unanswered):
    """The other side cannot do it now, and may later."""


class PeerConnection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @property
    def address(self) -> str:
        """The address at which this side was reached."""
        return str(self._writer.get_extra_info("sockname")[0])

    async def send(self, message: msgspec.Struct) -> None:
        data = msgspec.json.encode(message, enc_hook=encode_path)
        if len(data) > _LONGEST:
            raise Unanswered("cannot tell the other server", why=f"the message has {len(data)} bytes, and may have {_LONGEST}")
        self._writer.write(len(data).to_bytes(4, "big") + data)
        await self._writer.drain()

    async def receive(self, kind: type[_Message]) -> _Message:
        """Return the next message. Raises `OSError`, `EOFError` or `ValueError`."""
        length = int.from_bytes(await self._reader.readexactly(4), "big")
        if length > _LONGEST:
            raise ValueError(f"a message of {length} bytes is too long")
        return msgspec.json.decode(await self._reader.readexactly(length), type=kind, dec_hook=decode_path)

    async def gone(self) -> None:
        """Returns when the other side has closed it, or says what it must not."""
        with contextlib.suppress(OSError):
            await self._reader.read(1)

    def close(self) -> None:
        self._writer.close()


Dial = Callable[[tuple[str, int]], Awaitable[PeerConnection]]


async def dial(trust: PeerTrust, place: tuple[str, int]) -> PeerConnection:
    """Return a connection with the server at a place. Raises `NotYet`."""
    host, port = place
    try:
        async with asyncio.timeout(_HANDSHAKE_SECONDS):
            context = await trust.calling()
            reader, writer = await asyncio.open_connection(host, port, ssl=context, server_hostname=NAME)
    except (OSError, TimeoutError) as error:
        fix = "check connectURL, and that each server has the other's authority in kubevirt-external-ca"
        raise NotYet(f"cannot reach the server at {host} port {port}", why=_reason(error), fix=fix) from error
    tcp.keep_alive(writer.transport)
    return PeerConnection(reader, writer)


class RemoteTarget(GuestReceiver):
    """The target of a migration on another server."""

    def __init__(self, place: tuple[str, int], dial: Dial, migration: str) -> None:
        self._place, self._dial, self._migration = place, dial, migration
        # while the guest is on its way
        self._session: PeerConnection | None = None

    async def receive(self, request: PeerRequest) -> PeerReply:
        """Have the target wait for the guest. Raises `NotYet`, or `RequestRefused` with what it lacks."""
        connection = await self._dial(self._place)
        try:
            reply = await self._asked(connection, request)
            if reply.problem and not reply.is_final:
                raise NotYet("the target does not receive the guest yet", why=reply.problem)
            if reply.problem:
                raise RequestRefused("the target does not receive the guest", reason="NotReceivable", why=reply.problem)
        except BaseException:
            connection.close()
            raise
        self._session = connection
        return reply

    async def arrived(self, migration: str) -> None:
        """Returns when the guest is there."""
        if self._session is None:
            raise Unanswered("cannot ask the target", why="the connection to it is gone")
        try:
            reply = await self._session.receive(PeerReply)
        except (OSError, EOFError, ValueError) as error:
            raise Unanswered(f"cannot learn whether the guest of migration {migration} has arrived", why=_reason(error)) from error
        if not reply.yes:
            raise Unanswered("the guest has not arrived", why=reply.problem)

    async def take(self, migration: str) -> bool:
        """Whether the guest runs there from now on, for good; False: it never will."""
        return (await self._once(PeerRequest("take", migration))).yes

    async def drop(self, why: str) -> bool:
        """Whether the guest never runs there."""
        return (await self._once(PeerRequest("drop", self._migration, why=why))).yes

    def close(self) -> None:
        """The guest is not on its way any more."""
        if self._session is not None:
            self._session.close()
            self._session = None

    async def _once(self, request: PeerRequest) -> PeerReply:
        connection = await self._dial(self._place)
        try:
            reply = await self._asked(connection, request)
        finally:
            connection.close()
        if reply.problem:
            raise Unanswered(f"cannot {request.verb} the guest", why=reply.problem)
        return reply

    async def _asked(self, connection: PeerConnection, request: PeerRequest) -> PeerReply:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await connection.send(request)
                return await connection.receive(PeerReply)
        except (OSError, EOFError, ValueError, TimeoutError) as error:
            # With TLS 1.3 a server that does not trust us says so here.
            fix = "check that it has this server's authority in kubevirt-external-ca"
            raise NotYet("the server at the other side does not answer", why=_reason(error), fix=fix) from error


Serve = Callable[[PeerRequest, PeerConnection], Awaitable[None]]


async def answer(connection: PeerConnection, serve: Serve) -> None:
    """Answer the one request of a connection."""
    try:
        async with asyncio.timeout(_REQUEST_SECONDS):
            request = await connection.receive(PeerRequest)
    except msgspec.DecodeError as error:
        why = f"the request cannot be read ({error}); both servers need the same version of Paddock"
        await connection.send(PeerReply(why, is_final=True))
        return
    try:
        await serve(request, connection)
    except PaddockError as error:
        await connection.send(PeerReply(str(error)))


class MigrationPort:
    """The port at which sources of other servers ask. What is answered is `serve`'s business."""

    def __init__(self, host: str, port: int, trust: PeerTrust) -> None:
        self._host, self._port, self._trust = host, port, trust
        self._server: asyncio.Server | None = None
        self._serve: Serve | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Listen on the port. Raises OSError if it is taken."""
        self._server = await asyncio.start_server(self._accept, self._host, self._port)
        self._port = int(self._server.sockets[0].getsockname()[1])

    @property
    def addresses(self) -> list[str]:
        """Where other servers reach this one, in the form of `connectURL`."""
        return [f"[{self._host}]:{self._port}" if ":" in self._host else f"{self._host}:{self._port}"]

    def serve(self, serve: Serve) -> None:
        """Answer with this from now on."""
        self._serve = serve

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in tuple(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(self._open) >= _CONNECTIONS or self._serve is None:
            writer.close()
            return
        self._open.add(task)
        try:
            await self._answer(reader, writer, self._serve)
        except PaddockError as error:
            _LOG.warning("another server was not heard", extra={"error": str(error)})
        except (OSError, EOFError, ValueError, TimeoutError) as error:
            _LOG.info("connection of another server ended", extra={"error": _reason(error)})
        finally:
            self._open.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, serve: Serve) -> None:
        await writer.start_tls(await self._trust.listening(), ssl_handshake_timeout=_HANDSHAKE_SECONDS)
        tcp.keep_alive(writer.transport)
        await answer(PeerConnection(reader, writer), serve)


def _reason(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, EOFError):
        return "the connection was closed"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return str(error) or type(error).__name__
