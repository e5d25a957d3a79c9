"""The views of this server: what KubeVirt's clients look for, and what is nowhere stored (docs/design/0026-views.md)."""

from paddock.apiserver.objects.views import View
from paddock.apiserver.resources.declared import collection_of
from paddock.dialects.kubevirt.instance import GROUP
from paddock.plan.views import components, launchers

_INSTALLATIONS = collection_of(GROUP, "kubevirts")
VIEWS = (
    View(
        source=collection_of(GROUP, "virtualmachineinstances"),
        target=collection_of("", "pods"),
        make=launchers.pods,
        may_show=launchers.may_be_of,
        explain=launchers.stopping,
    ),
    View(
        source=_INSTALLATIONS,
        target=collection_of("apps", "deployments"),
        make=components.deployments,
        may_show=lambda _, name: name in components.DEPLOYMENTS,
        explain=components.explanation,
    ),
    View(
        source=_INSTALLATIONS,
        target=collection_of("apps", "daemonsets"),
        make=components.daemon_sets,
        may_show=lambda _, name: name in components.DAEMON_SETS,
        explain=components.explanation,
    ),
)
