"""The servers of each group and version. This server serves all of them itself; it passes no requests on to others."""

from collections.abc import Iterator

from paddock.base.jsondata import Data
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding
from paddock.server.resources.strategy import Strategy, WriteContext

GROUP = "apiregistration.k8s.io"
COLLECTION = f"apiservices.{GROUP}"
_RULE = "core/api-service"


class ApiServiceStrategy(Strategy):
    """Only the server itself serves."""

    def wrong_name(self, name: str) -> str:
        """The name ends in a dot where the group has no name."""
        return "may not contain '/' or '%'" if "/" in name or "%" in name else ""

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        """Mark the group and version as available."""
        new["status"] = {"conditions": [_available(context.now)]}
        return new

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """The name says what is served; nobody else is asked to serve it."""
        spec = new.get("spec") or {}
        name = f"{spec.get('version', '')}.{spec.get('group', '')}"
        given = new["metadata"].get("name", "")
        if given != name:
            yield finding.invalid(("metadata", "name"), given, f'must be `spec.version+"."+spec.group`: {name!r}', _RULE)
        for member, most in (("groupPriorityMinimum", 20000), ("versionPriority", 1000)):
            rank = spec.get(member) or 0
            if not 0 < rank <= most:
                yield finding.invalid(("spec", member), rank, f"must be positive and less than {most}", _RULE)
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


STRATEGIES: dict[tuple[str, str], Strategy] = {(GROUP, "APIService"): ApiServiceStrategy()}
