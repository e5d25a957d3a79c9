"""Kinds that are questions: posted, answered, never stored (`authentication.k8s.io`, `authorization.k8s.io`)."""

from typing import Annotated

from paddock.meta.objects import Resource
from paddock.schema.field import Field, Freeform, Object, Time
from paddock.schema.kind import Kind, Version

AUTHENTICATION, AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"


class TokenReviewSpec(Object):
    """A token to look at."""

    token: Annotated[str | None, Field("The token.", secret=True)] = None
    audiences: Annotated[list[str] | None, Field("Whom the token is shown to; default: this server.")] = None


class ResourceAttributes(Object):
    """A request for a resource."""

    namespace: Annotated[str | None, Field("Namespace; empty means all, or cluster scope.")] = None
    verb: Annotated[str | None, Field("Verb; `*` means all.")] = None
    group: Annotated[str | None, Field("Group of the resource.")] = None
    version: Annotated[str | None, Field("Version of the resource.")] = None
    resource: Annotated[str | None, Field("Plural of the resource.")] = None
    subresource: Annotated[str | None, Field("Subresource.")] = None
    name: Annotated[str | None, Field("Name of the object; empty means any.")] = None
    fieldSelector: Annotated[Freeform | None, Field("Fields the request is narrowed to.")] = None
    labelSelector: Annotated[Freeform | None, Field("Labels the request is narrowed to.")] = None


class NonResourceAttributes(Object):
    """A request for a path."""

    path: Annotated[str | None, Field("The path.")] = None
    verb: Annotated[str | None, Field("The verb.")] = None


class AccessSpec(Object):
    """What is asked for: a resource or a path."""

    resourceAttributes: Annotated[ResourceAttributes | None, Field("A request for a resource.")] = None
    nonResourceAttributes: Annotated[NonResourceAttributes | None, Field("A request for a path.")] = None


class SubjectAccessSpec(AccessSpec):
    """What is asked for, and for whom."""

    user: Annotated[str | None, Field("The user.")] = None
    groups: Annotated[list[str] | None, Field("Groups of the user.")] = None
    uid: Annotated[str | None, Field("UID of the user.")] = None
    extra: Annotated[dict[str, list[str]] | None, Field("More about the user.")] = None


class RulesSpec(Object):
    """Where."""

    namespace: Annotated[str | None, Field("The namespace.")] = None


class TokenRequestSpec(Object):
    """What the token shall be."""

    audiences: Annotated[list[str] | None, Field("Whom the token is for; default: this server.")] = None
    expirationSeconds: Annotated[int | None, Field("How long it is valid.", ge=600, le=1 << 32)] = None
    boundObjectRef: Annotated[Freeform | None, Field("An object that the token dies with.", nullable=True)] = None


class TokenRequestStatus(Object):
    """The token."""

    token: Annotated[str | None, Field("The token.", secret=True)] = None
    expirationTimestamp: Annotated[Time | None, Field("When it ends.")] = None


class TokenReview(Resource):
    """Who is behind a token?"""

    spec: Annotated[TokenReviewSpec, Field("The token.", required=True)] = TokenReviewSpec()
    status: Annotated[Freeform | None, Field("The answer.")] = None


class TokenRequest(Resource):
    """A token for a ServiceAccount."""

    spec: Annotated[TokenRequestSpec, Field("What it shall be.", required=True)] = TokenRequestSpec()
    status: Annotated[TokenRequestStatus | None, Field("The token.")] = None


class SelfSubjectReview(Resource):
    """Who am I?"""

    status: Annotated[Freeform | None, Field("The answer.")] = None


class SubjectAccessReview(Resource):
    """May somebody do something?"""

    spec: Annotated[SubjectAccessSpec, Field("Who, and what.", required=True)] = SubjectAccessSpec()
    status: Annotated[Freeform | None, Field("The answer.")] = None


class LocalSubjectAccessReview(Resource):
    """May somebody do something in a namespace?"""

    spec: Annotated[SubjectAccessSpec, Field("Who, and what.", required=True)] = SubjectAccessSpec()
    status: Annotated[Freeform | None, Field("The answer.")] = None


class SelfSubjectAccessReview(Resource):
    """May I do something?"""

    spec: Annotated[AccessSpec, Field("What.", required=True)] = AccessSpec()
    status: Annotated[Freeform | None, Field("The answer.")] = None


class SelfSubjectRulesReview(Resource):
    """What may I do in a namespace?"""

    spec: Annotated[RulesSpec, Field("Where.", required=True)] = RulesSpec()
    status: Annotated[Freeform | None, Field("The answer.")] = None


def _kind(group: str, cls: type[Resource], *, namespaced: bool = False) -> Kind:
    name = cls.__name__
    return Kind(
        group=group,
        kind=name,
        plural=f"{name.lower()}s",
        singular=name.lower(),
        cls=cls,
        dialect="core",
        versions=(Version("v1"),),
        namespaced=namespaced,
        status=False,
        builtin=True,
        stored=False,
    )


KINDS = (
    _kind(AUTHENTICATION, TokenReview),
    _kind(AUTHENTICATION, SelfSubjectReview),
    _kind(AUTHORIZATION, SubjectAccessReview),
    _kind(AUTHORIZATION, LocalSubjectAccessReview, namespaced=True),
    _kind(AUTHORIZATION, SelfSubjectAccessReview),
    _kind(AUTHORIZATION, SelfSubjectRulesReview),
)
