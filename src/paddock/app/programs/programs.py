"""The programs of the Providers of an embedded server: it starts them, restarts those that end, and ends them with the Providers.

A Provider of type qemu without another host is this server itself: its machines are KubeVirt's, in the Provider's own namespace, so whoever
may make a Provider gets no machines that he could not make himself. Its driver is in this process (docs/design/0018-provider-runtime.md).
"""

import asyncio
import contextlib
import hashlib
import random
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from paddock.app.programs.child import ChildFailed, ChildSecurity, ProviderChild
from paddock.app.programs.folder import ChildFolder, StagingFolders
from paddock.app.programs.launch import ChildLaunch
from paddock.base import quantity
from paddock.base.backoff import Backoff
from paddock.base.clock import Clock
from paddock.base.errors import PaddockError
from paddock.contract import issuing, tls
from paddock.dialects.virtrigaud.controllers.providers.connections import JUDGED_SECONDS, ProgramAddress, ProgramState, resolved
from paddock.dialects.virtrigaud.controllers.registry import ProviderSecrets
from paddock.dialects.virtrigaud.kinds.provider import Provider
from paddock.dialects.virtrigaud.plan.health import ProviderRuntimeFacts
from paddock.dialects.virtrigaud.plan.programplaces import ProgramPlace
from paddock.dialects.virtrigaud.plan.programs import embedded, environment, transport
from paddock.dialects.virtrigaud.plan.programs.embedded import DriverOffer, EmbeddedChoice
from paddock.dialects.virtrigaud.plan.programs.transport import TransportChoice
from paddock.dialects.virtrigaud.translate import described
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.target import Key
from paddock_drivers import catalog
from paddock_drivers.kit.staging import StagingSettings
from paddock_drivers.kubevirt import credentials as kubeconfigs
from paddock_drivers.kubevirt.driver import KubeVirtDriver
from paddock_drivers.kubevirt.settings import KubeVirtDriverSettings

_HERE = "127.0.0.1"
# libvirtd looks up who connects to its socket, and refuses a user whom the host does not know.
_STRANGER = (
    "libvirtd of this host refuses the users that programs of Providers have; use qemu+ssh://USER@127.0.0.1/system, or serve it yourself: "
    "`paddock provider serve --type libvirt`"
)
_PAUSES = Backoff(first=1.0, longest=60.0)
# A child that ran that long before it ended begins with the first pause again.
_STEADY_SECONDS = 120.0
_MEMORY, _CPU = "512Mi", "1"


class ProgramSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that all programs of a server share."""

    # where their files are, and the staging directories
    directory: Path
    # users and groups for them; none: they run as whoever runs Paddock
    numbers: range = range(0)
    # hosts and networks of this host that Providers may name
    hosts: tuple[str, ...] = ()
    # hosts and networks of this host that images may be downloaded from
    image_hosts: tuple[str, ...] = ()
    # driver by type of Provider, in place of the type's own
    drivers: Mapping[str, str] = {}
    # between the end of a program and its next start
    pauses: Backoff = _PAUSES


class _Kept(msgspec.Struct):
    """The child of a Provider, and what it was started with."""

    child: ProviderChild | None
    inputs: str
    user: int
    failures: int = 0
    started: float = 0.0
    due: float = 0.0
    problem: str = ""


class EmbeddedPrograms:
    """Runs the programs of the Providers of a server."""

    def __init__(self, client: Client, address: Callable[[], str], settings: ProgramSettings, clock: Clock) -> None:
        self._client = client
        self._address = address
        self._settings = settings
        self._clock = clock
        self._chance = random.Random()
        half = len(settings.numbers) // 2
        self._users, groups = settings.numbers[:half], settings.numbers[half:]
        self._folder = settings.directory / "providers"
        self._staging = StagingFolders(settings.directory / "staging", groups)
        types = catalog.TYPES.items()
        self._offer = DriverOffer(settings.drivers, {name: each.lack for name, each in types}, {name: each.apart for name, each in types})
        self._own: dict[Key, KubeVirtDriver] = {}
        self._kept: dict[Key, _Kept] = {}
        # why programs may not run ("": they may), for which inputs, and until when that holds
        self._judged: dict[Key, tuple[str, float, str]] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._handlers: list[Callable[[Key], None]] = []
        self._started = 0
        # Children of a process before this one have ended with it; their files stayed.
        shutil.rmtree(self._folder, ignore_errors=True)

    def listen(self, handler: Callable[[Key], None]) -> None:
        """Call this when the state of a program may have changed."""
        self._handlers.append(handler)

    def pids(self) -> Mapping[Key, int]:
        return {key: kept.child.pid for key, kept in self._kept.items() if kept.child is not None and not kept.child.ended}

    async def ensure(self, key: Key, provider: Provider, secrets: ProviderSecrets) -> ProgramState:
        """Bring a program up to its Provider's spec."""
        choice = embedded.choose(provider, secrets.credentials, self._offer)
        if choice.own:
            self._drop(key)
            return self._in_process(key)
        self._own.pop(key, None)
        security = transport.choose(provider, secrets.tls)
        problem, reason = choice.problem, choice.reason
        if not problem and security.refused:
            problem, reason = security.condition.message, "TLSNotConfigured"
        inputs = _fingerprint(provider, choice, secrets)
        if not problem:
            problem, reason = await self._judge(key, inputs, provider, secrets, security), "InvalidConfiguration"
        if problem:
            self._drop(key)
            phase = "Pending" if reason == "CredentialsMissing" else "Failed"
            return ProgramState(ProviderRuntimeFacts(phase, reason, problem, tls=security.condition, place=ProgramPlace.CHILD))
        return self._in_child(key, provider, secrets, (choice, security, inputs))

    def _in_process(self, key: Key) -> ProgramState:
        driver = self._own.get(key)
        if driver is None:
            self._staging.prepare(key.namespace)
            claims = self._staging.path(key.namespace)
            settings = KubeVirtDriverSettings(
                translation=described.translate,
                namespace=key.namespace,
                server=self._address(),
                staging=StagingSettings(claims=claims),
                scratch=claims,
            )
            driver = self._own[key] = KubeVirtDriver(self._client, settings)
        message = f"the machines are KubeVirt's, in the namespace {key.namespace} of this server"
        return ProgramState(ProviderRuntimeFacts(message=message, endpoint=self._address(), place=ProgramPlace.OWN), driver)

    async def _judge(self, key: Key, inputs: str, provider: Provider, secrets: ProviderSecrets, security: TransportChoice) -> str:
        """The refusal of a program, looked for again after a while: a name may lead elsewhere by then."""
        now = asyncio.get_running_loop().time()
        known = self._judged.get(key)
        if known is None or known[0] != inputs or known[1] <= now:
            problem = await self._refusal(provider, secrets, security)
            known = self._judged[key] = (inputs, now + JUDGED_SECONDS, problem)
        return known[2]

    async def _refusal(self, provider: Provider, secrets: ProviderSecrets, security: TransportChoice) -> str:
        """Return the reason why a Provider's program may not run with its spec; empty if it may."""
        own = self._variables(provider, security, "")
        if problem := environment.child_problem(provider.spec.runtime.env, own):
            return problem
        server = provider.spec.endpoint
        if embedded.KUBECONFIG in (secrets.credentials or {}) and provider.spec.type == embedded.OWN_TYPE:
            try:
                access, _ = kubeconfigs.read((secrets.credentials or {})[embedded.KUBECONFIG], self._clock)
            except PaddockError as error:
                return str(error)
            server = access.server
            if problem := embedded.server_problem(provider, server):
                return problem
        # A socket of this host is judged as loopback is.
        host = embedded.host_of(server) or (_HERE if embedded.local_socket(provider) else "")
        if not host:
            return ""
        try:
            await resolved(host, 443, self._settings.hosts)
        except PermissionError as error:
            return str(error)
        except OSError:
            # The provider reports hosts that it cannot find.
            pass
        return _STRANGER if embedded.local_socket(provider) and self._users else ""

    def _variables(self, provider: Provider, security: TransportChoice, manager: str) -> dict[str, str]:
        """The variables that a Provider cannot set. A child is on this host's network, so its administrator says what images come from."""
        hosts = ",".join(self._settings.image_hosts)
        return {**environment.variables(provider, security, manager), environment.IMAGE_HOSTS: hosts}

    def _in_child(
        self, key: Key, provider: Provider, secrets: ProviderSecrets, chosen: tuple[EmbeddedChoice, TransportChoice, str]
    ) -> ProgramState:
        choice, security, inputs = chosen
        kept, now = self._kept.get(key), asyncio.get_running_loop().time()
        if kept is not None and (kept.inputs != inputs or self._expires(kept, security)):
            self._drop(key)
            kept = None
        if kept is not None and kept.child is not None and kept.child.ended:
            self._note_end(key, kept, now)
        if kept is None:
            try:
                kept = self._kept[key] = _Kept(None, inputs, self._free_user())
            except ChildFailed as error:
                facts = ProviderRuntimeFacts("Failed", "DeploymentError", str(error), tls=security.condition, place=ProgramPlace.CHILD)
                return ProgramState(facts)
        if kept.child is None and now >= kept.due:
            self._start(key, provider, secrets, (choice, security), kept)
        return self._state(kept, security)

    def _expires(self, kept: _Kept, security: TransportChoice) -> bool:
        """Return whether managed certificates have to be made anew, which takes another program."""
        material = kept.child.security.provider if kept.child is not None else None
        return security.managed and material is not None and issuing.is_old(material.certificate, self._clock.seconds())

    def _state(self, kept: _Kept, security: TransportChoice) -> ProgramState:
        child = kept.child
        if child is None:
            failed = kept.failures >= 5
            facts = ProviderRuntimeFacts(
                phase="Failed" if failed else "Starting",
                reason="DeploymentNotReady",
                message=kept.problem,
                tls=security.condition,
                place=ProgramPlace.CHILD,
            )
            return ProgramState(facts)
        place = f"127.0.0.1:{child.port}"
        message = f"process {child.pid} of this server" if child.serving else "the program starts"
        facts = ProviderRuntimeFacts(
            phase="Running" if child.serving else "Starting",
            reason="DeploymentReady" if child.serving else "DeploymentNotReady",
            message=message,
            endpoint=place if child.serving else "",
            tls=security.condition,
            place=ProgramPlace.CHILD,
        )
        if not child.serving:
            return ProgramState(facts)
        end = child.security
        return ProgramState(facts, address=ProgramAddress("127.0.0.1", child.port, end.manager, end.server_name, end.verify))

    def _start(
        self, key: Key, provider: Provider, secrets: ProviderSecrets, chosen: tuple[EmbeddedChoice, TransportChoice], kept: _Kept
    ) -> None:
        choice, security = chosen
        self._started += 1
        folder = ChildFolder(self._folder / f"{self._started}", kept.user)
        ends, manager = self._security(key, security)
        child = ProviderChild(str(key), folder, ends, lambda: self._changed(key))
        group = self._staging.prepare(key.namespace)
        variables = self._variables(provider, security, manager)
        variables |= {each.name: each.value or "" for each in provider.spec.runtime.env or ()}

        def launch(descriptor: int) -> ChildLaunch:
            return ChildLaunch(
                driver=choice.driver,
                descriptor=descriptor,
                tls=folder.tls,
                credentials=folder.credentials,
                staging=self._staging.path(key.namespace),
                environment=variables,
                encrypted=security.encrypted,
                log_level=provider.spec.runtime.logLevel,
                user=kept.user,
                account=folder.account,
                groups=(group,) if group else (),
            )

        kept.started = asyncio.get_running_loop().time()
        try:
            child.start(launch, secrets.credentials or {}, _bounds(provider))
        except (ChildFailed, OSError) as error:
            kept.problem = str(error)
            self._pause(key, kept)
        else:
            kept.child = child

    def _security(self, key: Key, security: TransportChoice) -> tuple[ChildSecurity, str]:
        """The certificates of both sides, and the name that the manager's has."""
        name = tls.server_name(*key)
        made = issuing.issue(name, self._clock.seconds()) if security.managed else None
        # Of a Secret, one certificate serves both sides; the name that it is pinned to is the manager's, too.
        material = security.material
        ends = ChildSecurity(
            name, made.provider if made is not None else material, made.manager if made is not None else material, security.verify
        )
        return ends, issuing.MANAGER if made is not None else name

    def _note_end(self, key: Key, kept: _Kept, now: float) -> None:
        if kept.child is not None:
            kept.problem, kept.child = kept.child.problem, None
        if now - kept.started >= _STEADY_SECONDS:
            kept.failures = 0
        self._pause(key, kept)

    def _pause(self, key: Key, kept: _Kept) -> None:
        kept.failures += 1
        pause = self._settings.pauses.pause(kept.failures, self._chance)
        kept.due = asyncio.get_running_loop().time() + pause
        asyncio.get_running_loop().call_later(pause, self._changed, key)

    def _changed(self, key: Key) -> None:
        for each in self._handlers:
            each(key)

    def _free_user(self) -> int:
        used = {each.user for each in self._kept.values()}
        found = next((number for number in self._users if number not in used), 0)
        if self._users and not found:
            raise ChildFailed("cannot give the program of a Provider a user of its own", why=f"all {len(self._users)} numbers are in use")
        return found

    def _drop(self, key: Key) -> asyncio.Task[None] | None:
        kept = self._kept.pop(key, None)
        if kept is None or kept.child is None:
            return None
        task = asyncio.create_task(kept.child.stop(), name=f"end of provider {key}")
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task

    async def end(self, key: Key, provider: Provider | None = None) -> None:
        """End a program; it may finish its calls, and nobody waits for that."""
        self._own.pop(key, None)
        self._judged.pop(key, None)
        self._drop(key)

    async def close(self) -> None:
        """End all programs, and wait for that."""
        for key in list(self._kept):
            self._drop(key)
        await asyncio.gather(*self._ending, return_exceptions=True)
        self._staging.remove_empty()
        with contextlib.suppress(OSError):
            self._folder.rmdir()


def _fingerprint(provider: Provider, choice: EmbeddedChoice, secrets: ProviderSecrets) -> str:
    """The inputs of a program as a text: another text means another program."""
    spec = provider.spec
    seen = (spec.endpoint, spec.type, spec.insecureSkipVerify, spec.defaults, spec.runtime, choice.driver)
    digest = hashlib.sha256(msgspec.json.encode(seen))
    for name, values in (("credentials", secrets.credentials), ("tls", secrets.tls)):
        for key, value in sorted((values or {}).items()):
            digest.update(b"\0".join((name.encode(), key.encode(), hashlib.sha256(value).digest())))
    return digest.hexdigest()


def _bounds(provider: Provider) -> dict[str, str]:
    """The limits of its control group: those of its resources, or those of a container in a cluster."""
    given = (provider.spec.runtime.resources.limits if provider.spec.runtime.resources is not None else None) or {}
    memory, cpu = quantity.whole(given.get("memory", _MEMORY)), quantity.parse(given.get("cpu", _CPU))
    return {"memory.max": str(memory), "cpu.max": f"{max(1000, cpu * 100_000 // quantity.UNIT)} 100000", "pids.max": "256"}
