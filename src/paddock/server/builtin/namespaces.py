"""Behaviour of a Namespace besides its schema (docs/spec/kube-api.md section 5.3)."""

from collections.abc import Iterator

from paddock.base import cpushares, names
from paddock.base.jsondata import Data
from paddock.kubernetes.meta import failure
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding
from paddock.server import bodies
from paddock.server.context import RequestContext, ServerParts
from paddock.server.edge.http import HttpResponse
from paddock.server.objects.requests import Proposal
from paddock.server.representation import answer, form_of
from paddock.server.resources.strategy import Strategy, WriteContext
from paddock.server.verbs.options import write_options

NAME_LABEL = "kubernetes.io/metadata.name"
# The server's own word that a namespace is empty; others may add theirs.
FINALIZER = "kubernetes"
_KEPT = ("default", "kube-system", "kube-public")


class NamespaceStrategy(Strategy):
    """A namespace goes only when nothing is left in it."""

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        """Named by a label, held by our finalizer, active."""
        new["spec"] = {"finalizers": [FINALIZER]}
        new["status"] = {"phase": "Active"}
        return self._labelled(new)

    def prepare_update(self, new: Data, old: Data, context: WriteContext) -> Data:
        """The spec is the server's."""
        new["spec"] = old.get("spec", {})
        return self._labelled(new)

    def _labelled(self, new: Data) -> Data:
        meta = new["metadata"]
        meta["labels"] = {**(meta.get("labels") or {}), NAME_LABEL: meta.get("name", "")}
        return new

    def wrong_name(self, name: str) -> str:
        """A namespace is a part of host names."""
        if names.is_label(name):
            return ""
        return (
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must be no more than 63 characters"
        )

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """Yield a finding for each finalizer that is not fully qualified, and for a share in the processors that is none."""
        share = (new["metadata"].get("annotations") or {}).get(cpushares.ANNOTATION)
        if share is not None and not cpushares.is_share(share):
            yield finding.invalid(("metadata", f"annotations[{cpushares.ANNOTATION}]"), share, cpushares.RULE, "namespace")
        for index, each in enumerate((new.get("spec") or {}).get("finalizers") or ()):
            if each != FINALIZER and "/" not in each:
                yield finding.invalid(
                    ("spec", "finalizers", index), each, "name is neither a standard finalizer name nor is it fully qualified", "namespace"
                )

    def before_delete(self, old: Data, context: WriteContext) -> None:
        """Some namespaces stay."""
        name = old["metadata"]["name"]
        if name in _KEPT:
            raise failure.forbidden(failure.FailureTarget(name=name, kind="namespaces"), "this namespace may not be deleted")

    def holds_deletion(self, old: Data) -> bool:
        """As long as anybody has to agree."""
        return bool((old.get("spec") or {}).get("finalizers"))

    def mark_deleted(self, new: Data) -> Data:
        """Terminating, from the first moment."""
        if new["metadata"].get("deletionTimestamp"):
            new["status"] = {**(new.get("status") or {}), "phase": "Terminating"}
        return new

    def returns_deleted(self) -> bool:
        """The object, so that clients can wait for it."""
        return True


async def finalize(parts: ServerParts, call: RequestContext) -> HttpResponse:
    """`PUT .../finalize`: the only way to change spec.finalizers."""
    form = form_of(call.request)
    options = write_options(call, operation="Update")
    wanted = bodies.read_object(call.request).data
    finalizers = (wanted.get("spec") or {}).get("finalizers")
    written = await parts.writer.replace(call.resource, "", call.route.name, lambda old: with_finalizers(old, finalizers), options)
    return answer(form, parts.renderer(call.resource, form).one(written.value))


def with_finalizers(old: Data, finalizers: list[str] | None) -> Proposal:
    """The namespace with other finalizers in its spec."""
    spec = {key: value for key, value in (old.get("spec") or {}).items() if key != "finalizers"}
    return Proposal({**old, "metadata": dict(old["metadata"]), "spec": {**spec, **({"finalizers": finalizers} if finalizers else {})}})
