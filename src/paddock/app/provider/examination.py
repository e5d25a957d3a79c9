"""Examines an endpoint for somebody who sets up a Provider: the way there, the credentials, and what the driver needs."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec

from paddock.app.provider import endpoints
from paddock.app.provider.translation import translate
from paddock.base.clock import SystemClock
from paddock.base.errors import PaddockError
from paddock.contract import extensionmessages as x
from paddock.contract import features
from paddock.contract import messages as m
from paddock.contract.driver import Driver, extensions
from paddock.contract.errors import ProviderError
from paddock.contract.examination import Examiner, ProviderFinding
from paddock.contract.factory import DriverContext
from paddock_drivers import catalog

_SECONDS = 60.0
_AUTHORITIES = ("ca.crt", "cacert.pem", "ca.pem")


class ExaminedEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A Provider that may be there one day."""

    type: str
    endpoint: str
    credentials: Path
    verify: bool = True
    environment: dict[str, str] = {}


async def examine(examined_endpoint: ExaminedEndpoint) -> AsyncIterator[ProviderFinding]:
    """Yield what is found, in the order of the way there. What cannot be reached is not examined further."""
    factory = catalog.find(examined_endpoint.type)
    stored, authority = _credentials(examined_endpoint.credentials)
    yield stored
    try:
        place = endpoints.place(examined_endpoint.endpoint)
    except ValueError:
        yield ProviderFinding(check="endpoint", grade="bad", text="the endpoint is no address", fix="write it as SCHEME://HOST:PORT/PATH")
        return
    if place is not None:
        found = await endpoints.examine(place, authority, SystemClock(), verify=examined_endpoint.verify)
        for each in found:
            yield each
        if any(each.grade == "bad" for each in found):
            return
    variables = {
        **examined_endpoint.environment,
        "PROVIDER_TYPE": examined_endpoint.type,
        "PROVIDER_ENDPOINT": examined_endpoint.endpoint,
        "TLS_INSECURE_SKIP_VERIFY": "false" if examined_endpoint.verify else "true",
    }
    context = DriverContext(clock=SystemClock(), environment=variables, credentials=examined_endpoint.credentials, translation=translate)
    try:
        async with factory(context) as driver:
            async for each in _driver(driver):
                yield each
    except PaddockError as error:
        yield _bad("driver", error)


def _credentials(folder: Path) -> tuple[ProviderFinding, bytes]:
    """Examine the directory of credentials, which nobody else may read."""
    try:
        names = sorted(each.name for each in folder.iterdir() if each.is_file())
    except OSError as error:
        text = f"cannot read {folder}: {error.strerror}"
        return ProviderFinding(
            check="credentials", grade="bad", text=text, fix="name a directory with a file for each key of the Secret"
        ), b""
    open_to_all = [name for name in names if (folder / name).stat().st_mode & 0o077]
    authority = next(((folder / name).read_bytes() for name in _AUTHORITIES if name in names), b"")
    if open_to_all:
        text = f"others may read {', '.join(open_to_all)} in {folder}"
        return ProviderFinding(check="credentials", grade="warning", text=text, fix=f"chmod -R go= {folder}"), authority
    return ProviderFinding(check="credentials", text=f"{', '.join(names) or 'no file'} in {folder}"), authority


async def _driver(driver: Driver) -> AsyncIterator[ProviderFinding]:
    try:
        async with asyncio.timeout(_SECONDS):
            answer = await driver.validate(m.ValidateRequest())
    except TimeoutError:
        text = f"the hypervisor does not answer within {_SECONDS:g} s"
        yield ProviderFinding(check="login", grade="bad", text=text, fix="look at its load and its log")
        return
    except ProviderError as error:
        yield _bad("login", error)
        return
    if not answer.ok:
        yield ProviderFinding(check="login", grade="bad", text=answer.message or "the driver refuses the hypervisor and gives no reason")
        return
    yield ProviderFinding(check="login", text=answer.message or "the hypervisor takes the credentials")
    for check, work in (("machines", _machines), ("hosts", _hosts), ("storage", _storage)):
        try:
            found = await work(driver)
        except ProviderError as error:
            yield _bad(check, error)
        else:
            if found:
                yield ProviderFinding(check=check, text=found)
    if isinstance(driver, Examiner):
        try:
            for each in await driver.examine():
                yield each
        except ProviderError as error:
            yield _bad("driver", error)


async def _machines(driver: Driver) -> str:
    found = (await driver.list_vms(m.ListVMsRequest())).vms
    return f"{len(found)} machine{'s' * (len(found) != 1)} can be seen"


async def _hosts(driver: Driver) -> str:
    if not (await driver.get_capabilities(m.GetCapabilitiesRequest())).supports_clustering:
        return ""
    return f"the hosts are {', '.join(each.id for each in (await driver.list_hosts(m.ListHostsRequest())).hosts)}"


async def _storage(driver: Driver) -> str:
    calls = extensions(driver)
    if not features.has((await calls.get_features(x.GetFeaturesRequest())).features, features.DATASTORES):
        return ""
    found = (await calls.list_datastores(x.ListDatastoresRequest())).datastores
    return ", ".join(f"{each.name}: {each.free_bytes / (1 << 30):.1f} GiB free" for each in found) or "there is no storage"


def _bad(check: str, error: PaddockError) -> ProviderFinding:
    return ProviderFinding(check=check, grade="bad", text=f"{error.what}: {error.why}" if error.why else error.what, fix=error.fix)
