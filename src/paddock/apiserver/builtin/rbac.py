"""Roles and bindings: who may do what (`rbac.authorization.k8s.io/v1`)."""

from typing import Annotated

from paddock.meta.objects import Resource
from paddock.meta.selectors import LabelSelector
from paddock.schema.field import Field, Object
from paddock.schema.kind import AGE, Column, Kind, Version

GROUP = "rbac.authorization.k8s.io"


class PolicyRule(Object):
    """Verbs on resources, or on paths."""

    verbs: Annotated[list[str], Field("Verbs; `*` means all.", required=True)] = []
    apiGroups: Annotated[list[str] | None, Field("Groups of the resources; the core group is the empty text.")] = None
    resources: Annotated[list[str] | None, Field("Resources, or resource/subresource; `*` means all.")] = None
    resourceNames: Annotated[list[str] | None, Field("Names of objects; none means all.")] = None
    nonResourceURLs: Annotated[list[str] | None, Field("Paths; a `*` at the end covers what follows.")] = None


class Subject(Object):
    """Somebody who gets a role."""

    kind: Annotated[str, Field("User, Group or ServiceAccount.", required=True)] = ""
    apiGroup: Annotated[str | None, Field("Group of the kind; default: by kind.")] = None
    name: Annotated[str, Field("Name of the subject.", required=True)] = ""
    namespace: Annotated[str | None, Field("Namespace of a ServiceAccount.")] = None


class RoleRef(Object):
    """The role that is given; it cannot be changed."""

    apiGroup: Annotated[str, Field("Group of the role.")] = GROUP
    kind: Annotated[str, Field("Role or ClusterRole.", required=True)] = ""
    name: Annotated[str, Field("Name of the role.", required=True)] = ""


class AggregationRule(Object):
    """A role made of others."""

    clusterRoleSelectors: Annotated[list[LabelSelector] | None, Field("Labels of the roles whose rules are collected.")] = None


class Role(Resource):
    """What may be done in one namespace."""

    rules: Annotated[list[PolicyRule] | None, Field("The rules.", nullable=True)] = None


class ClusterRole(Resource):
    """What may be done in the cluster, or in any namespace that binds it."""

    rules: Annotated[list[PolicyRule] | None, Field("The rules; collected from others with an aggregationRule.", nullable=True)] = None
    aggregationRule: Annotated[AggregationRule | None, Field("Whose rules are collected.")] = None


class RoleBinding(Resource):
    """Gives a role to somebody, in one namespace."""

    subjects: Annotated[list[Subject] | None, Field("Who gets the role.")] = None
    roleRef: Annotated[RoleRef, Field("The role.", required=True)] = RoleRef()


class ClusterRoleBinding(Resource):
    """Gives a ClusterRole to somebody, everywhere."""

    subjects: Annotated[list[Subject] | None, Field("Who gets the role.")] = None
    roleRef: Annotated[RoleRef, Field("The role.", required=True)] = RoleRef()


_CREATED = Column("Created At", ".metadata.creationTimestamp")
_BINDING = (Column("Role", ".roleRef.name"), AGE)


def _kind(kind: str, cls: type[Resource], columns: tuple[Column, ...], *, namespaced: bool) -> Kind:
    return Kind(
        group=GROUP,
        kind=kind,
        plural=f"{kind.lower()}s",
        cls=cls,
        dialect="core",
        versions=(Version("v1"),),
        namespaced=namespaced,
        columns=columns,
        status=False,
        builtin=True,
    )


KINDS = (
    _kind("Role", Role, (_CREATED,), namespaced=True),
    _kind("ClusterRole", ClusterRole, (_CREATED,), namespaced=False),
    _kind("RoleBinding", RoleBinding, _BINDING, namespaced=True),
    _kind("ClusterRoleBinding", ClusterRoleBinding, _BINDING, namespaced=False),
)
