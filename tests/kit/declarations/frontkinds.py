"""The kinds of machines of the front dialects."""

from paddock.fleet import kinds

STAKATER, VIRTRIGAUD, VITISTACK = (kinds.called(word)[0] for word in ("stakater", "virtrigaud", "vitistack"))
