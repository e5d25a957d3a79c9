"""All resources that are there from the start: every declared kind with its strategy, and the kinds that only a server has."""

from collections.abc import Iterator
from ipaddress import IPv4Network
from typing import Any

import msgspec

from paddock.apiserver.admission.mutationrules import MutatingBindingStrategy, MutatingPolicyStrategy
from paddock.apiserver.admission.policyrules import PolicyBindingStrategy, PolicyStrategy
from paddock.apiserver.admission.registrations import WebhookStrategy
from paddock.apiserver.builtin import (
    admissionkinds,
    apiservices,
    claims,
    components,
    csr,
    datavolumes,
    devices,
    endpoints,
    events,
    flowcontrol,
    flowtables,
    leases,
    machines,
    namespaces,
    networkpolicies,
    pools,
    powerstates,
    quotas,
    rbac,
    rbacrules,
    reviews,
    secrets,
    servicenetworks,
    services,
    tabled,
)
from paddock.apiserver.builtin.clustertables import CLUSTER_TABLES
from paddock.apiserver.builtin.pipelines import pipeline_of
from paddock.apiserver.builtin.tables import TABLES
from paddock.apiserver.resources.declared import resources_of
from paddock.apiserver.resources.resource import ServedResource, Subresource
from paddock.apiserver.resources.strategy import Strategy
from paddock.apiserver.security.rbac import Rbac
from paddock.dialects import catalog
from paddock.schema.kind import AdmissionSettings, Kind

_CLUSTER_KINDS = (
    *apiservices.KINDS,
    *csr.KINDS,
    *flowcontrol.KINDS,
    *quotas.KINDS,
    *networkpolicies.KINDS,
    *admissionkinds.KINDS,
    *components.KINDS,
    *devices.KINDS,
    *servicenetworks.KINDS,
)
_NETWORK_TABLES = {**networkpolicies.TABLES, **servicenetworks.TABLES}
_TABLES = {**TABLES, **CLUSTER_TABLES, **flowtables.TABLES, **csr.TABLES, **_NETWORK_TABLES, **devices.TABLES, **components.TABLES}
# Kinds that no manifest of Paddock's commands holds.
KINDS = (*rbac.KINDS, *reviews.KINDS, *leases.KINDS, *events.KINDS, *endpoints.KINDS, *_CLUSTER_KINDS)
_STRATEGIES: dict[tuple[str, str], Strategy] = {
    ("", "Namespace"): namespaces.NamespaceStrategy(),
    (apiservices.GROUP, "APIService"): apiservices.ApiServiceStrategy(),
    ("", "Secret"): secrets.SecretStrategy(),
    ("", "Event"): events.EventStrategy(new_shape=False),
    (events.GROUP, "Event"): events.EventStrategy(new_shape=True),
    (leases.GROUP, "Lease"): leases.LeaseStrategy(),
    ("", "PersistentVolumeClaim"): claims.PersistentVolumeClaimStrategy(),
    ("storage.k8s.io", "StorageClass"): claims.StorageClassStrategy(),
    ("", "Endpoints"): endpoints.EndpointsStrategy(),
    (endpoints.SLICES, "EndpointSlice"): endpoints.EndpointSliceStrategy(),
    ("", "ResourceQuota"): quotas.QuotaStrategy(),
    ("", "LimitRange"): quotas.LimitStrategy(),
    **networkpolicies.STRATEGIES,
    **servicenetworks.STRATEGIES,
    **devices.STRATEGIES,
    **flowcontrol.STRATEGIES,
    (admissionkinds.GROUP, "MutatingWebhookConfiguration"): WebhookStrategy(),
    (admissionkinds.GROUP, "ValidatingWebhookConfiguration"): WebhookStrategy(),
    (admissionkinds.GROUP, "ValidatingAdmissionPolicy"): PolicyStrategy(),
    (admissionkinds.GROUP, "ValidatingAdmissionPolicyBinding"): PolicyBindingStrategy(),
    (admissionkinds.GROUP, "MutatingAdmissionPolicy"): MutatingPolicyStrategy(),
    (admissionkinds.GROUP, "MutatingAdmissionPolicyBinding"): MutatingBindingStrategy(),
}
_EVENTS = {"selectable": events.SELECTABLE, "stored_fields": events.STORED_FIELDS, "create_on_update": True}
# What a declaration does not say of a built-in kind.
_MORE: dict[tuple[str, str], dict[str, Any]] = {
    ("", "Namespace"): {"selectable": ("status.phase", "name"), "stored_fields": {"name": "metadata.name"}},
    ("", "Secret"): {"selectable": ("type",)},
    (csr.GROUP, "CertificateSigningRequest"): {"selectable": ("spec.signerName",), "unconditional_update": True},
    ("", "Event"): _EVENTS,
    (events.GROUP, "Event"): {
        **_EVENTS,
        "collection": events.COLLECTION,
        "stored_version": "v1",
        "to_stored": events.to_stored,
        "from_stored": events.from_stored,
    },
    ("", "Service"): {"create_on_update": True},
    ("", "ComponentStatus"): {"verbs": components.VERBS, "deprecation": components.DEPRECATION},
    ("", "Endpoints"): {
        "create_on_update": True,
        "deprecation": "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    },
    **{(rbac.GROUP, kind): {"create_on_update": True} for kind in ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")},
    (leases.GROUP, "Lease"): {"create_on_update": True, "unconditional_update": False},
    (devices.GROUP, "ResourceSlice"): {"selectable": ("spec.nodeName", "spec.driver")},
}


def resources(settings: AdmissionSettings, judge: Rbac, network: IPv4Network = services.NETWORK) -> Iterator[ServedResource]:
    """Every resource of the start; `network` is where Services get their addresses from."""
    own: dict[tuple[str, str], Strategy] = {
        ("", "Service"): services.ServiceStrategy(network),
        (csr.GROUP, "CertificateSigningRequest"): csr.RequestStrategy(judge),
        (datavolumes.GROUP, "DataVolume"): datavolumes.DataVolumeStrategy(judge),
        (datavolumes.GROUP, "DataImportCron"): datavolumes.DataImportCronStrategy(),
        **machines.strategies(settings),
        **pools.strategies(settings),
        **powerstates.strategies(),
    }
    for kind in (*catalog.every(), *KINDS):
        place = (kind.group, kind.kind)
        strategy = own.get(place) or _strategy(kind, judge)
        # Their strategies know the writer, and judge what is reserved for controllers.
        trusting = msgspec.structs.replace(settings, trusted=True) if settings.controllers and place in machines.RESERVED else settings
        for resource in resources_of(kind, trusting, strategy):
            yield _completed(resource, kind, settings) if kind.builtin else pools.aliased(resource, kind)
    yield from tabled.resources(stored=settings.workloads == "stored")


def _strategy(kind: Kind, judge: Rbac) -> Strategy | None:
    if kind.group == rbac.GROUP:
        return rbacrules.strategy_of(kind.plural, judge)
    return _STRATEGIES.get((kind.group, kind.kind))


def _completed(resource: ServedResource, kind: Kind, settings: AdmissionSettings) -> ServedResource:
    """A built-in kind with everything that only a server knows of it."""
    place = (resource.group, resource.kind)
    more = dict(_MORE.get(place, {}))
    if kind.stored:
        more["pipeline"] = pipeline_of(kind, settings)
    if place in _TABLES:
        more["columns"], more["cells"] = _TABLES[place]
    if place == ("", "Namespace"):
        more["verbs"] = tuple(verb for verb in resource.verbs if verb != "deletecollection")
        more["subresources"] = (*resource.subresources, Subresource("finalize", ("update",)))
    if place == (csr.GROUP, "CertificateSigningRequest"):
        more["subresources"] = (*resource.subresources, Subresource("approval", ("get", "patch", "update")))
    if place == ("", "ServiceAccount"):
        token = Subresource("token", ("create",), "TokenRequest", f"{reviews.AUTHENTICATION}/v1")
        more["subresources"] = (*resource.subresources, token)
    return msgspec.structs.replace(resource, **more)
