"""pyVmomi's stub with what a driver needs: bounded connections, the newest version of both sides, and a new login for a lost session.

A stub may be used by several threads at a time. Each call takes a connection from its pool.
"""

import http.client
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

from pyVmomi import vim
from pyVmomi.SoapAdapter import SoapStubAdapter
from pyVmomi.VmomiSupport import GetServiceVersions, versionIdMap

from paddock.base.certificates import trusting
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.vsphere.settings import VSphereEndpoint, VSphereSettings

_SERVICE = "vim25"
# A connection that idles longer may have been closed by the other side.
_IDLE_SECONDS = 60
# Calls that change nothing are made again when a connection broke under them.
_READS = frozenset(
    {"Fetch", "RetrieveProperties", "RetrievePropertiesEx", "FindByUuid", "FindAllByUuid", "FindByInventoryPath", "CurrentTime"}
    | {"RetrieveServiceContent"}
)
Renewal = Callable[[int], None]


class RenewingStub(SoapStubAdapter):  # type: ignore[misc]  # pyVmomi is not typed
    """A stub that logs in again, once, when a call finds its session gone."""

    def __init__(self, settings: VSphereSettings, version: str, context: ssl.SSLContext | None, renew: Renewal) -> None:
        endpoint = settings.endpoint
        super().__init__(
            host=endpoint.host,
            port=endpoint.port if endpoint.secure else -endpoint.port,
            path=endpoint.path,
            version=version,
            poolSize=settings.threads,
            connectionPoolTimeout=_IDLE_SECONDS,
            sslContext=context,
            httpConnectionTimeout=settings.answer_seconds,
        )
        self.scheme = _connections(settings)
        self._renew = renew
        # counts logins: a call that failed in an older session needs no further login
        self.generation = 0
        self._own = threading.local()

    def InvokeMethod(self, mo: Any, info: Any, args: Any, outerStub: Any = None) -> Any:
        """Make a call; once more in a new session if there was none, or over a new connection if a read lost its own."""
        seen = self.generation
        try:
            return self._invoked(mo, info, args, outerStub)
        except vim.fault.NotAuthenticated:
            if getattr(self._own, "plain", False):
                raise
            self._renew(seen)
            return super().InvokeMethod(mo, info, args, outerStub)

    def _invoked(self, mo: Any, info: Any, args: Any, outerStub: Any) -> Any:
        try:
            return super().InvokeMethod(mo, info, args, outerStub)
        except (ConnectionError, http.client.RemoteDisconnected):
            if info.wsdlName not in _READS:
                raise
            return super().InvokeMethod(mo, info, args, outerStub)

    def login(self, enter: Callable[[], object]) -> None:
        """Log in by a function whose own calls are not renewed."""
        # A cookie of a session that is over would go with the login.
        self.cookie = ""
        self.leave(enter)
        self.generation += 1

    def leave(self, act: Callable[[], object]) -> None:
        """Make calls that are not renewed."""
        self._own.plain = True
        try:
            act()
        finally:
            self._own.plain = False


def _connections(settings: VSphereSettings) -> type[http.client.HTTPConnection]:
    """A kind of connection that gives up sooner while it connects than while it waits for an answer."""

    class _Bounded(http.client.HTTPSConnection if settings.endpoint.secure else http.client.HTTPConnection):  # type: ignore[misc]
        def connect(self) -> None:
            self.timeout = settings.connect_seconds
            super().connect()
            self.sock.settimeout(settings.answer_seconds)
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    return _Bounded


def trust(settings: VSphereSettings, authority: str | None) -> ssl.SSLContext | None:
    """Return the context that verifies the endpoint; None for plain text."""
    if not settings.endpoint.secure:
        return None
    context = trusting(file=authority)
    if settings.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def negotiated(settings: VSphereSettings, context: ssl.SSLContext | None) -> str:
    """Return the newest version of the API that the endpoint and pyVmomi speak; raises what a connection raises."""
    endpoint = settings.endpoint
    options: dict[str, Any] = {"context": context} if endpoint.secure else {}
    connection = _connections(settings)(endpoint.host, endpoint.port, **options)
    try:
        connection.request("GET", f"{endpoint.path}/vimServiceVersions.xml")
        answer = connection.getresponse()
        text = answer.read() if answer.status == http.client.OK else b""
    finally:
        connection.close()
    spoken = _spoken(text, endpoint)
    chosen = next((each for each in GetServiceVersions(_SERVICE) if versionIdMap[each] in spoken), None)
    if chosen is None:
        why = f"it speaks vSphere {max(spoken, default='of no version')}"
        raise ProviderError(ErrorKind.NOT_SUPPORTED, "the endpoint speaks no version of the API that this driver knows", why=why)
    return str(chosen)


def _spoken(text: bytes, endpoint: VSphereEndpoint) -> set[str]:
    """The versions in the document that a vCenter describes itself with."""
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError:
        what = f"{endpoint.authority} is no vCenter and no ESXi host"
        raise ProviderError(ErrorKind.UNAVAILABLE, what, why="it has no list of versions", fix="check the endpoint") from None
    found: set[str] = set()
    for space in root.findall("namespace"):
        if space.findtext("name") == f"urn:{_SERVICE}":
            found |= {each.text or "" for each in (*space.findall("version"), *space.findall("priorVersions/version"))}
    return found
