"""Where the program of a Provider runs, and the fields that nothing acts on there (docs/design/0014-unread-fields.md).

Each place names what it acts on, so that a field which is declared tomorrow is named until somebody carries it out.
"""

from enum import StrEnum

from paddock.dialects.virtrigaud.kinds.provider import Provider
from paddock.kubernetes.meta.fieldrecord import FieldRecord
from paddock.kubernetes.schema.finding import format_path


class ProgramPlace(StrEnum):
    """The place of a Provider's program, and why it does not act on everything."""

    # a Deployment of its own, which acts on all
    PODS = ""
    CHILD = "the program runs on this server, and not in Pods"
    OWN = "the machines are this server's own, and no program runs for them"
    SERVED = "somebody else runs the program"


# Of the controllers, and what only says which program it is.
_ALWAYS = ("type", "endpoint", "credentialSecretRef", "insecureSkipVerify", "defaults", "healthCheck", "runtime.mode", "runtime.image")
_CALLS = ("rateLimit", "connectionPooling", "runtime.service.tls")
_ACTS_ON = {
    ProgramPlace.CHILD: (*_CALLS, "runtime.env", "runtime.logLevel", "runtime.logFormat", "runtime.resources.limits"),
    ProgramPlace.OWN: (),
    ProgramPlace.SERVED: _CALLS,
}


def unused(provider: Provider, program_place: ProgramPlace) -> tuple[str, ...]:
    """Return the paths of what a Provider says and nothing acts on."""
    if program_place is ProgramPlace.PODS:
        return ()
    record = FieldRecord(provider)
    for each in (*_ALWAYS, *_ACTS_ON[program_place]):
        record.take_whole("spec", *each.split("."))
    return tuple(format_path(loss.path) for loss in record.settle())
