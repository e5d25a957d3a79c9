"""Events about fields that no translator reads."""

from paddock.kubernetes.meta.translated import Loss
from paddock.kubernetes.runtime.reference import InvolvedObject
from paddock.kubernetes.runtime.unreadfields import REASON, UnreadFieldEvents

ABOUT = InvolvedObject("v1", "Thing", "default", "a", "uid")
UNREAD = Loss(of="Thing/a", path=("spec", "color"), value="red", why="why", instead="instead", unread=True)
NAMED = Loss(of="Thing/a", path=("spec", "size"), value=1, why="why", instead="instead")


class Events:
    def __init__(self) -> None:
        self.told: list[tuple[str, str, str]] = []

    def tell(self, about: InvolvedObject, kind: str, reason: str, note: str) -> None:
        assert about == ABOUT
        self.told.append((kind, reason, note))


def test_a_field_is_told_once_and_named_losses_are_not() -> None:
    events = Events()
    unread = UnreadFieldEvents(events)
    unread.tell(ABOUT, [NAMED])
    assert events.told == []
    unread.tell(ABOUT, [NAMED, UNREAD])
    unread.tell(ABOUT, [UNREAD])
    assert events.told == [("Warning", REASON, "Thing/a: spec.color: why; instead")]
    assert "red" not in events.told[0][2]


def test_a_field_that_comes_again_is_told_again() -> None:
    events = Events()
    unread = UnreadFieldEvents(events)
    for losses in ([UNREAD], [], [UNREAD]):
        unread.tell(ABOUT, losses)
    assert len(events.told) == 2
    unread.forget("uid")
    unread.tell(ABOUT, [UNREAD])
    assert len(events.told) == 3
