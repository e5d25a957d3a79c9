"""What serves each group and version. This server serves all of them itself; it passes no requests on to others."""

from collections.abc import Iterator
from typing import Annotated

from paddock.apiserver.resources.strategy import Data, Strategy, WriteContext
from paddock.meta.conditions import Condition
from paddock.meta.objects import Resource
from paddock.schema import finding
from paddock.schema.field import Field, Freeform, Object
from paddock.schema.finding import Finding
from paddock.schema.kind import AGE, Column, Kind

GROUP = "apiregistration.k8s.io"
COLLECTION = f"apiservices.{GROUP}"
_RULE = "core/api-service"


class ApiServiceSpec(Object):
    """What is served, and by whom."""

    group: Annotated[str | None, Field("The group.")] = None
    version: Annotated[str | None, Field("The version.")] = None
    service: Annotated[Freeform | None, Field("The Service that serves it; none: the server itself.")] = None
    groupPriorityMinimum: Annotated[int, Field("Rank of the group, the highest first.", required=True, bits=32)] = 0
    versionPriority: Annotated[int, Field("Rank of the version in its group.", required=True, bits=32)] = 0
    insecureSkipTLSVerify: Annotated[bool | None, Field("Whether the certificate of the Service is believed.")] = None
    caBundle: Annotated[str | None, Field("Authority of the certificate of the Service.")] = None


class ApiServiceStatus(Object):
    """What was observed."""

    conditions: Annotated[list[Condition] | None, Field("Whether it is available.", keys=("type",))] = None


class APIService(Resource):
    """A group and version, and what serves it."""

    spec: Annotated[ApiServiceSpec | None, Field("What is served, and by whom.")] = None
    status: Annotated[ApiServiceStatus | None, Field("What was observed.")] = None


class ApiServiceStrategy(Strategy):
    """Only the server itself serves."""

    def wrong_name(self, name: str) -> str:
        """The name ends in a dot where the group has no name."""
        return "may not contain '/' or '%'" if "/" in name or "%" in name else ""

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        """What the server serves is available."""
        new["status"] = {"conditions": [_available(context.now)]}
        return new

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """The name says what is served; nobody else is asked to serve it."""
        spec = new.get("spec") or {}
        name = f"{spec.get('version', '')}.{spec.get('group', '')}"
        given = new["metadata"].get("name", "")
        if given != name:
            yield finding.invalid(("metadata", "name"), given, f'must be `spec.version+"."+spec.group`: {name!r}', _RULE)
        if spec.get("service"):
            yield finding.forbidden(("spec", "service"), "this server does not pass requests on to other API servers", _RULE)


def _available(since: str) -> Data:
    return {
        "type": "Available",
        "status": "True",
        "reason": "Local",
        "message": "Local APIServices are always available",
        "lastTransitionTime": since,
    }


KINDS = (
    Kind(
        group=GROUP,
        kind="APIService",
        plural="apiservices",
        cls=APIService,
        dialect="core",
        namespaced=False,
        columns=(Column("Available", '.status.conditions[?(@.type=="Available")].status'), AGE),
        status=True,
        builtin=True,
        categories=("api-extensions",),
    ),
)
