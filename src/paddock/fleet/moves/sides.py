"""The two servers of a move."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from paddock.base.clock import SystemClock
from paddock.base.directories import KUBECONFIG
from paddock.base.errors import Terminal
from paddock.fleet.diagnosis.scene import texts
from paddock.fleet.servers.session import ServerSession
from paddock.kubernetes.client import kubeconfig
from paddock.kubernetes.client.access import Access
from paddock.kubernetes.client.client import Client, ClientSettings
from paddock.kubernetes.client.errors import BadAccess, NotFound
from paddock.kubernetes.client.http.https import Https
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.targets import kind_target

NAMESPACES = kind_target("", "Namespace")
_SYSTEM = "kube-system"


class UnknownServer(Terminal):
    """A server has nothing that identifies it."""


class MoveSide(msgspec.Struct, frozen=True, kw_only=True):
    """One server of a move. `uid` identifies it, whatever its address is; `namespace` is the one to use there."""

    session: ServerSession
    uid: str
    namespace: str

    @property
    def client(self) -> Client:
        return self.session.client

    @property
    def title(self) -> str:
        """Return the role and the address of the server, for errors."""
        return self.session.access.title or self.address

    @property
    def address(self) -> str:
        """Its address, for people."""
        return self.session.access.server


async def side(session: ServerSession, namespace: str) -> MoveSide:
    """Return a side. Raises `UnknownServer` if the server has no namespace kube-system."""
    try:
        found = await session.client.get(NAMESPACES, Key("", _SYSTEM))
    except NotFound as error:
        fix = "use a server that has it"
        raise UnknownServer(f"cannot identify {session.access.server}", why=f"it has no namespace {_SYSTEM}", fix=fix) from error
    return MoveSide(session=session, uid=texts(found, "metadata", "uid"), namespace=namespace)


def access_of(text: str) -> Access:
    """Return the access that `--to` names: the directory of a server, a kubeconfig, or a context. Raises `BadAccess`."""
    path = Path(text)
    if path.is_dir():
        path /= KUBECONFIG
    if path.is_file():
        return kubeconfig.find(os.environ, SystemClock(), explicit=path)
    try:
        return kubeconfig.find(os.environ, SystemClock(), context=text)
    except BadAccess as error:
        error.fix = f"name a context, a kubeconfig or the directory of a server; {error.fix}".removesuffix("; ")
        raise


@asynccontextmanager
async def opened(text: str, namespace: str) -> AsyncIterator[MoveSide]:
    """Connect to the server that `--to` names; without a namespace, the kubeconfig's is used."""
    access = access_of(text)
    access = msgspec.structs.replace(access, title=f"the target {access.server}")
    async with Client(Https(access), ClientSettings(warnings=False)) as client:
        session = ServerSession(client, access, namespace or access.namespace, SystemClock())
        yield await side(session, session.namespace)
