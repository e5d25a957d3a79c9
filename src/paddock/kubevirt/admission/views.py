"""The views of this server: what KubeVirt's clients look for, and what is nowhere stored (docs/design/0026-views.md)."""

from paddock.kubevirt.kinds.instance import GROUP
from paddock.kubevirt.plan.views import components, launchers
from paddock.server.objects.views import View
from paddock.server.resources.declared import collection_of

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
