"""All resources that are there from the start: every declared kind with its strategy, and the kinds that only a server has."""

from collections.abc import Iterator
from typing import Any

import msgspec

from paddock.kubernetes import catalog
from paddock.kubernetes.schema.kind import AdmissionSettings, KindFacts
from paddock.kubevirt.admission import clones, datavolumes, machines, migrations, pools, restores
from paddock.server.builtin import claims, events, fronts, namespaces, powerstates, secrets, services, tabled
from paddock.server.builtin.pipelines import BuiltinPipeline
from paddock.server.kindtable import rows, table
from paddock.server.resources.declared import resources_of
from paddock.server.resources.resource import ServedResource, Subresource
from paddock.server.resources.strategy import Strategy
from paddock.server.security.rbac import Rbac
from paddock.server.security.reviewing import AUTHENTICATION

_STRATEGIES: dict[tuple[str, str], Strategy] = {
    ("", "Namespace"): namespaces.NamespaceStrategy(),
    ("", "Secret"): secrets.SecretStrategy(),
    ("", "Event"): events.EventStrategy(new_shape=False),
    ("", "PersistentVolumeClaim"): claims.PersistentVolumeClaimStrategy(),
    ("storage.k8s.io", "StorageClass"): claims.StorageClassStrategy(),
}
# What a declaration does not say of a built-in kind.
_MORE: dict[tuple[str, str], dict[str, Any]] = {
    ("", "Namespace"): {"selectable": ("status.phase", "name"), "stored_fields": {"name": "metadata.name"}},
    ("", "Secret"): {"selectable": ("type",)},
    ("", "Event"): events.SERVED,
    ("", "Service"): {"create_on_update": True},
}


def resources(settings: AdmissionSettings, judge: Rbac, *networks: services.Network) -> Iterator[ServedResource]:
    """Every resource of the start; `networks` is where Services get their addresses from."""
    own: dict[tuple[str, str], Strategy] = {
        ("", "Service"): services.ServiceStrategy(*networks),
        (datavolumes.GROUP, "DataVolume"): datavolumes.DataVolumeStrategy(judge),
        (datavolumes.GROUP, "DataImportCron"): datavolumes.DataImportCronStrategy(),
        **machines.strategies(settings),
        **clones.strategies(),
        **migrations.strategies(settings),
        **pools.strategies(settings),
        **powerstates.strategies(),
        **restores.strategies(settings),
        **fronts.strategies(settings),
    }
    for kind in catalog.facts():
        place = (kind.group, kind.kind)
        strategy = own.get(place) or _STRATEGIES.get(place)
        # Their strategies know the writer, and judge what is reserved for controllers.
        trusting = msgspec.structs.replace(settings, trusted=True) if settings.controllers and place in machines.RESERVED else settings
        for resource in resources_of(kind, trusting, strategy):
            yield _completed(resource, kind, settings) if kind.builtin else pools.aliased(resource, kind)
    yield from tabled.resources(judge, stored=settings.workloads == "stored")


def _completed(resource: ServedResource, kind: KindFacts, settings: AdmissionSettings) -> ServedResource:
    """A built-in kind with everything that only a server knows of it."""
    place = (resource.group, resource.kind)
    more = dict(_MORE.get(place, {}))
    if kind.stored:
        more["pipeline"] = BuiltinPipeline(kind, settings)
    if place in tabled.CELLS:
        more["columns"], more["cells"] = rows.columns(table.kinds()[place]), tabled.CELLS[place]
    if place == ("", "Namespace"):
        more["verbs"] = tuple(verb for verb in resource.verbs if verb != "deletecollection")
        more["subresources"] = (*resource.subresources, Subresource("finalize", ("update",)))
    if place == ("", "ServiceAccount"):
        token = Subresource("token", ("create",), "TokenRequest", f"{AUTHENTICATION}/v1")
        more["subresources"] = (*resource.subresources, token)
    return msgspec.structs.replace(resource, **more)
