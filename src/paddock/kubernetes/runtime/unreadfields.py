"""Events about the fields of an object that no translator reads."""

from collections.abc import Iterable

from paddock.kubernetes.meta.translated import Loss
from paddock.kubernetes.runtime.controller import EventRecorder
from paddock.kubernetes.runtime.reference import InvolvedObject

REASON = "FieldsIgnored"


class UnreadFieldEvents:
    """Tells each list of unread fields once per object. Losses with a reason of their own are documented, and no event."""

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder
        # by UID
        self._reported: dict[str, str] = {}

    def tell(self, about: InvolvedObject, losses: Iterable[Loss]) -> None:
        """Write an event when the list differs from the one before."""
        found = "; ".join(f"{loss.of}: {loss.field}: {loss.why}; {loss.instead}" for loss in losses if loss.unread)
        if found == self._reported.get(about.uid, ""):
            return
        self._reported[about.uid] = found
        if found:
            self._recorder.tell(about, "Warning", REASON, found)
        else:
            self.forget(about.uid)

    def forget(self, uid: str) -> None:
        self._reported.pop(uid, None)
