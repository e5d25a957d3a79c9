"""The console's server: it listens, and gives each request its way to assets, session, API, stream or sockets.

Every answer passes through `_dispatch`, so that no way leaves out the guard, and through `_secured`, so that none leaves out a header.
"""

import asyncio
import errno
import logging
import os
import ssl
from collections.abc import Collection

import msgspec

from paddock.base.clock import Clock, SystemClock
from paddock.base.errors import PaddockError, Terminal
from paddock.kubernetes.client.access import Access
from paddock.server.edge import frames
from paddock.server.edge.http import Answer, HttpRequest, HttpResponse, StreamResponse, StreamSink, Upgrade
from paddock.server.edge.limits import ConnectionLimits
from paddock.server.edge.refusals import HttpRefusal
from paddock.server.edge.server import Server
from paddock.web import guard, problems, signin, sockets
from paddock.web.answers.rows import WebAnswer
from paddock.web.assets import PageAssets
from paddock.web.guard import SAFETY_HEADERS, ConsoleOrigin
from paddock.web.identities import IdentityPool
from paddock.web.live import stream, topics
from paddock.web.routes import PREFIX, WebBytes, WebRefusal, WebRequest, WebResult, place_of
from paddock.web.session import WebHost, WebSession
from paddock.web.sessions import OneTimeLinks, SessionTable
from paddock.web.signin import SignInMethod
from paddock.web.table import table

_LOG = logging.getLogger(__name__)
_SOCKETS = "sockets/"
_LIMITS = ConnectionLimits(
    head_bytes=32 * 1024,
    body_bytes=3 * 1024 * 1024,
    bodies_bytes=32 * 1024 * 1024,
    connections=1000,
    connections_per_address=500,
    refusal_headers=(*SAFETY_HEADERS, ("cache-control", "no-store")),
)
_SWEEP_SECONDS = 60.0
_CLOSE_SECONDS = 1.0
_JSON = (("content-type", "application/json"), ("cache-control", "no-store"))
_UNAUTHORIZED = 401


class ConsoleSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a console, fixed at its start. `names` are further names and addresses under which browsers reach it."""

    host: str = "127.0.0.1"
    port: int = 0
    names: tuple[str, ...] = ()
    tls: ssl.SSLContext | None = None
    login: SignInMethod = "link"


class ConsoleServer:
    """A console that is up between `start` and `close`."""

    def __init__(
        self, settings: ConsoleSettings, access: Access, assets: PageAssets, *, host: WebHost | None = None, clock: Clock | None = None
    ) -> None:
        self._settings = settings
        self._assets = assets
        self._clock = clock or SystemClock()
        self._identities = IdentityPool(access, self._clock, host or WebHost())
        self._links = OneTimeLinks(self._clock)
        self._routes = table()
        self._server = Server(self._answer, tls=settings.tls, limits=_LIMITS)
        self._sweeping: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Listen. Raises `Terminal` for an address that cannot be listened on."""
        settings = self._settings
        try:
            port = await self._server.listen(settings.host, settings.port)
        except OSError as error:
            why = os.strerror(error.errno).lower() if error.errno else str(error)
            fix = "choose another port" if error.errno == errno.EADDRINUSE else "name an address of this host and a port that you may use"
            raise Terminal(f"the console cannot listen on {settings.host}:{settings.port}", why=why, fix=f"{fix}: --listen") from error
        scheme = "https" if settings.tls is not None else "http"
        self.port = port
        self._origin = ConsoleOrigin.of(scheme, _names(settings), port)
        self._sessions = SessionTable(self._clock, port, secure=settings.tls is not None)
        self._sweeping = asyncio.create_task(self._sweep())

    @property
    def address(self) -> str:
        """The address for browsers."""
        name = self._settings.names[0] if self._settings.names else self._settings.host
        return f"{self._origin.scheme}://{f'[{name}]' if ':' in name else name}:{self.port}/"

    def link(self) -> str:
        """Return the address that opens a session: with a new one-time link, or the page that asks for a token."""
        return f"{self.address}login/{self._links.issue()}" if self._settings.login == "link" else self.address

    async def close(self) -> None:
        """End all sessions and stop listening."""
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.gather(self._sweeping, return_exceptions=True)
        await self._server.close(_CLOSE_SECONDS)
        await self._identities.close()

    async def _sweep(self) -> None:
        """Close what belongs to sessions that have expired."""
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            await self._identities.keep(self._sessions.identities())

    # --- every request ------------------------------------------------------------------------------------------------------

    async def _answer(self, request: HttpRequest) -> Answer:
        try:
            answer = await self._dispatch(request)
        except HttpRefusal as refused:
            answer = refused.response
        except PaddockError as error:
            answer = _problem(error)
        except TimeoutError as error:
            answer = _problem(WebRefusal(504, "the server did not answer in time", why=str(error), fix="try again"))
        except Exception as error:
            # The edge of a program: one request that fails unexpectedly is no reason to fail others.
            _LOG.exception("request of the console failed; report this", extra={"path": request.path.partition("login/")[0]})
            answer = _problem(error)
        return _secured(answer)

    async def _dispatch(self, request: HttpRequest) -> Answer:
        guard.check_host(request, self._origin)
        path = request.target.partition("?")[0]
        if not path.startswith(PREFIX):
            return self._of_page(request)
        guard.check_read(request)
        below = path.removeprefix(PREFIX)
        if frames.asked(request):
            guard.check_socket(request, self._origin)
            return self._socket(request, below)
        if request.method not in guard.READS:
            guard.check_write(request, self._origin)
        if below == signin.LOGIN and request.method == "GET":
            return _encoded(signin.method(self._settings.login))
        if below == signin.LOGIN and request.method == "POST":
            return await self._sign_in(request)
        if below == signin.LOGOUT and request.method == "POST":
            return await self._sign_out(request)
        session = self._session(request)
        if below == "stream" and request.method == "GET":
            return self._stream(request, session)
        route, parts = self._routes.find(request.method, below)
        await request.receive(session.user)
        query = {name: values[0] for name, values in request.query.items()}
        asked = WebRequest(session=session, method=request.method, path=below, parts=parts, query=query, body=request.body)
        return _encoded(await route.handler(asked))

    def _session(self, request: HttpRequest) -> WebSession:
        found = self._sessions.find(request)
        if found is None:
            raise WebRefusal(_UNAUTHORIZED, "nobody is signed in to this console", fix=signin.FIXES[self._settings.login])
        return found

    # --- page and sessions --------------------------------------------------------------------------------------------------

    def _of_page(self, request: HttpRequest) -> Answer:
        if request.method not in guard.READS:
            raise WebRefusal(405, f"{request.method} is not possible here")
        if request.path.startswith(signin.LINKS):
            # A client that only looks must not use the link up.
            if request.method != "GET":
                raise WebRefusal(405, "a link is opened with GET")
            if self._settings.login == "link" and self._links.redeem(request.path.removeprefix(signin.LINKS)):
                return signin.welcome(self._sessions.open(self._identities.of_kubeconfig()))
            return signin.expired()
        found = self._assets.answer(request)
        if found is None:
            raise WebRefusal(404, "the console does not serve this path")
        return found

    async def _sign_in(self, request: HttpRequest) -> Answer:
        if self._settings.login != "token":
            raise WebRefusal(404, "this console takes no tokens", fix=signin.FIXES["link"])
        if request.arriving is not None:
            # Nobody is known yet for whom a large body would be kept.
            raise WebRefusal(413, "cannot read the token: no token is that long", fix="paste the token alone")
        session = await self._identities.of_token(signin.token_of(request.body))
        return signin.done(f"signed in as {session.user or 'the user of the token'}", self._sessions.open(session))

    async def _sign_out(self, request: HttpRequest) -> Answer:
        header = self._sessions.end(request)
        await self._identities.keep(self._sessions.identities())
        return signin.done("signed out", header)

    # --- stream and sockets -------------------------------------------------------------------------------------------------

    def _stream(self, request: HttpRequest, session: WebSession) -> StreamResponse:
        names = dict.fromkeys(filter(None, request.parameter("topics").split(",")))
        known = [each for each in topics.TOPICS if each in names]
        if not known or len(known) != len(names):
            raise WebRefusal(400, "a topic does not exist", why=f"the topics are {', '.join(topics.TOPICS)}", fix="reload the page")

        async def run(sink: StreamSink) -> None:
            with session.live.listening(known) as page:
                await stream.write(page, sink, lambda: self._sessions.find(request) is session)

        return StreamResponse(200, run, stream.HEADERS)

    def _socket(self, request: HttpRequest, below: str) -> Upgrade:
        session = self._session(request)
        place, _, name = below.removeprefix(_SOCKETS).rpartition("/")
        if not below.startswith(_SOCKETS) or name not in sockets.STREAMS:
            raise WebRefusal(404, "the console has no such WebSocket")
        # Not decoded: the names of machines need no encoding.
        machine = place_of(place)
        return Upgrade(lambda socket: sockets.bridge(session, machine, name, socket, lambda: self._sessions.find(request) is session))


def _names(settings: ConsoleSettings) -> Collection[str]:
    loopback = ("localhost", "127.0.0.1", "::1") if settings.host in ("127.0.0.1", "::1", "localhost") else ()
    return {settings.host, *loopback, *settings.names}


def _encoded(result: WebResult) -> HttpResponse:
    if isinstance(result, WebBytes):
        return HttpResponse(result.status, result.body, (("content-type", result.content_type), ("cache-control", "no-store")))
    answer: WebAnswer = result
    return HttpResponse(200, msgspec.json.encode(answer), _JSON)


def _problem(error: Exception) -> HttpResponse:
    body = problems.body_of(error)
    return HttpResponse(body.code, problems.encoded(body), _JSON)


def _secured(answer: Answer) -> Answer:
    if isinstance(answer, HttpResponse | StreamResponse):
        answer.headers = (*answer.headers, *SAFETY_HEADERS)
    return answer
