"""The programs of Providers in a cluster: a Deployment, a Service, and a Secret with certificates unless the user has their own."""

import asyncio
from collections.abc import Callable, Mapping

import msgspec
import orjson

from paddock.base.clock import Clock
from paddock.base.jsondata import Data
from paddock.contract import issuing
from paddock.contract.tls import TlsMaterial
from paddock.dialects.virtrigaud.controllers import targets
from paddock.dialects.virtrigaud.controllers.providers.connections import ProgramAddress, ProgramState
from paddock.dialects.virtrigaud.controllers.registry import ProviderSecrets
from paddock.dialects.virtrigaud.kinds.provider import Provider
from paddock.dialects.virtrigaud.plan import marks
from paddock.dialects.virtrigaud.plan.health import ProviderRuntimeFacts
from paddock.dialects.virtrigaud.plan.programs import deployment, embedded, rollout, transport
from paddock.dialects.virtrigaud.plan.programs.deployment import ClusterWish
from paddock.dialects.virtrigaud.plan.programs.transport import TransportChoice
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import Forbidden, Invalid
from paddock.kubernetes.client.options import Selection
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.core.secret import Secret, decoded
from paddock.kubernetes.runtime.cache import CacheChange
from paddock.kubernetes.runtime.desired import DesiredObject, DesiredSet, ForeignObject
from paddock.kubernetes.runtime.informers import Informers
from paddock.kubernetes.runtime.reference import InvolvedObject
from paddock.kubernetes.targets import kind_target

MANAGER = "paddock-virtrigaud"
DEPLOYMENTS = kind_target("apps", "Deployment")
SERVICES = kind_target("", "Service")
SECRETS = kind_target("", "Secret")
CLAIMS = kind_target("", "PersistentVolumeClaim")
_OURS = Selection(labels=f"app.kubernetes.io/managed-by={deployment.MANAGED_BY}")
_STAGING = Selection(labels=deployment.STAGING_LABEL)
# Types that no image serves: neither Paddock nor VirtRigaud has one.
_NOWHERE = {
    "firecracker": "machines of type firecracker are processes of their host; run `paddock provider serve --type firecracker` there, "
    f"and name its address in the annotation {marks.PROVIDER_ADDRESS}"
}
_AGAIN_SECONDS = 30.0


class ClusterSettings(msgspec.Struct, frozen=True):
    """The settings of all programs in a cluster."""

    # certificates are made for Providers that name no Secret
    managed_certificates: bool = True


class _Ends(msgspec.Struct, frozen=True):
    """The certificates of a connection: where the provider has its own, and what the manager shows."""

    secret: str = ""
    manager: str = ""
    material: TlsMaterial | None = None
    # a Secret to be applied, and its revision
    wanted: Data | None = None
    revision: str = ""


class ClusterPrograms:
    """Runs the programs of Providers as Pods."""

    def __init__(self, client: Client, informers: Informers, clock: Clock, settings: ClusterSettings) -> None:
        self._clock = clock
        self._settings = settings
        self._deployments, services = informers.of(DEPLOYMENTS, _OURS), informers.of(SERVICES, _OURS)
        self._secrets, self._claims = informers.of(targets.SECRETS), informers.of(CLAIMS, _STAGING)
        self._set = DesiredSet(client, (self._deployments, services, self._secrets), manager=MANAGER)
        # certificates that the cache may not show yet
        self._issued: dict[Key, Mapping[str, str]] = {}
        self._handlers: list[Callable[[Key], None]] = []
        for informer in (self._deployments, services):
            informer.handle(self._owned)
        self._claims.handle(self._staged)
        self._seen: dict[Key, None] = {}

    def listen(self, handler: Callable[[Key], None]) -> None:
        """Call this when the state of a program may have changed."""
        self._handlers.append(handler)

    def _owned(self, change: CacheChange) -> None:
        for each in (change.old, change.new):
            for owner in each.meta.ownerReferences or () if each is not None else ():
                if owner.kind == targets.PROVIDERS.kind and owner.apiVersion == targets.PROVIDERS.api_version:
                    self._tell(Key(change.seen.key.namespace, owner.name))

    def _staged(self, change: CacheChange) -> None:
        for key in self._seen:
            if key.namespace == change.seen.key.namespace:
                self._tell(key)

    def _tell(self, key: Key) -> None:
        for each in self._handlers:
            each(key)

    async def ensure(self, key: Key, provider: Provider, secrets: ProviderSecrets) -> ProgramState:
        """Bring the objects of a Provider up to its spec."""
        self._seen[key] = None
        choice = transport.choose(provider, secrets.tls, managed=self._settings.managed_certificates)
        known = ProviderRuntimeFacts(tls=choice.condition)
        reason, problem = _problem(provider, secrets, choice)
        if problem:
            phase = "Pending" if reason == "CredentialsMissing" else "Failed"
            return ProgramState(msgspec.structs.replace(known, phase=phase, reason=reason, message=problem))
        ends = self._ends(key, provider, secrets, choice)
        wish = ClusterWish(choice, ends.secret, ends.manager, self._claims_of(key), _revisions(secrets, ends))
        service, pods = deployment.objects(provider, wish)
        wanted = [DesiredObject(SERVICES, service), DesiredObject(DEPLOYMENTS, pods)]
        if ends.wanted is not None:
            wanted.insert(0, DesiredObject(SECRETS, ends.wanted))
        try:
            await self._set.reach(_owner(provider), wanted)
        except (ForeignObject, Forbidden, Invalid) as error:
            asyncio.get_running_loop().call_later(_AGAIN_SECONDS, self._tell, key)
            reason = "ServiceError" if "service" in str(error).lower() else "DeploymentError"
            return ProgramState(msgspec.structs.replace(known, phase="Failed", reason=reason, message=str(error)))
        return self._state(key, provider, known, ends, choice)

    def _state(self, key: Key, provider: Provider, known: ProviderRuntimeFacts, ends: _Ends, choice: TransportChoice) -> ProgramState:
        host, port, service = deployment.host(provider), deployment.port(provider), deployment.name(provider)
        seen = self._deployments.cache.get(Key(key.namespace, service))
        current: Data | None = orjson.loads(seen.raw) if seen is not None else None
        facts = rollout.facts(current, msgspec.structs.replace(known, service=service))
        if facts.phase != "Running":
            return ProgramState(facts, claims=frozenset())
        facts = msgspec.structs.replace(facts, endpoint=f"{host}:{port}")
        address = ProgramAddress(host, port, ends.material, host, choice.verify)
        return ProgramState(facts, address=address, claims=deployment.claims(current or {}))

    async def end(self, key: Key, provider: Provider | None = None) -> None:
        """Take the objects of a Provider away. With the Provider itself, they go as what it owns."""
        self._seen.pop(key, None)
        self._issued.pop(key, None)
        if provider is not None:
            await self._set.reach(_owner(provider), ())

    def _claims_of(self, key: Key) -> tuple[str, ...]:
        return tuple(sorted(each.key.name for each in self._claims.cache if each.key.namespace == key.namespace and not each.meta.deleting))

    def _ends(self, key: Key, provider: Provider, secrets: ProviderSecrets, choice: TransportChoice) -> _Ends:
        if not choice.encrypted:
            return _Ends()
        if choice.material is not None:
            # One certificate serves both sides; the name that it is pinned to is the manager's, too.
            return _Ends(
                transport.secret_name(provider), deployment.host(provider), choice.material, revision=secrets.revisions.get("tls", "")
            )
        data = self._managed(key, provider)
        values = decoded(Secret(data=dict(data)))
        material = TlsMaterial(values["manager.crt"], values["manager.key"], values["ca.crt"])
        wanted = deployment.certificates(provider, data)
        return _Ends(deployment.certificates_name(provider), issuing.MANAGER, material, wanted, revision=issuing.serial(values["tls.crt"]))

    def _managed(self, key: Key, provider: Provider) -> Mapping[str, str]:
        """The values of the Secret with managed certificates: those that there are, or new ones."""
        seen = self._secrets.cache.get(Key(key.namespace, deployment.certificates_name(provider)))
        found: Mapping[str, str] = (seen.read(targets.SECRETS).data or {}) if seen is not None else self._issued.get(key, {})
        values = decoded(Secret(data=dict(found)))
        complete = all(values.get(each) for each in ("tls.crt", "tls.key", "ca.crt", "manager.crt", "manager.key"))
        if not complete or issuing.is_old(values["tls.crt"], self._clock.seconds()):
            found = deployment.certificate_data(issuing.issue(deployment.host(provider), self._clock.seconds()))
        self._issued[key] = found
        return found


def _problem(provider: Provider, secrets: ProviderSecrets, choice: TransportChoice) -> tuple[str, str]:
    """The problem because of which no Pod is made, with its reason; empty if one is."""
    runtime = provider.spec.runtime
    if problem := _NOWHERE.get(provider.spec.type, ""):
        return "DriverMissing", problem
    if not runtime.image:
        return "MissingRuntime", "spec.runtime.image is empty: name the image of the provider"
    if choice.refused:
        return "TLSNotConfigured", choice.condition.message
    problem = embedded.credentials_problem(provider, secrets.credentials)
    return ("CredentialsMissing", problem) if problem else ("", "")


def _revisions(secrets: ProviderSecrets, ends: _Ends) -> dict[str, str]:
    found = {"credentials": secrets.revisions.get("credentials", ""), "tls": ends.revision}
    return {name: value for name, value in found.items() if value}


def _owner(provider: Provider) -> InvolvedObject:
    target, metadata = targets.PROVIDERS, provider.metadata
    return InvolvedObject(target.api_version, target.kind, metadata.namespace or "", metadata.name or "", metadata.uid or "")
