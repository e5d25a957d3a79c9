"""Causes that lie with the host: no room, a host that does not fit, hardware that is not there, networks that cannot be had."""

from collections.abc import Iterator, Mapping

from paddock.fleet.diagnosis.links import NODE
from paddock.fleet.diagnosis.rule import CauseDepth, Diagnosis, DiagnosisRule, Evidence, Look, RuleView
from paddock.fleet.diagnosis.sayings import Statement
from paddock.fleet.diagnosis.scene import conditions, texts
from paddock.kubernetes.meta import ages


def _silent(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    for node in view.nodes:
        ready = conditions(node.data).get("Ready") if node.ref.id == NODE else None
        if ready is not None and texts(ready, "status") != "True":
            said, reason = texts(ready, "message"), texts(ready, "reason")
            if (reason in _FIRST) != (rule.id == "host-starting"):
                continue
            cause = f"Host {node.ref.name} is not ready" + (f": {said}" if said else ", or does not answer.")
            since = ages.seconds_of(texts(ready, "lastTransitionTime"))
            yield rule.found(node, cause, fix=_HOST_FIXES.get(reason, ""), seen=Evidence("status.conditions[Ready]", reason, since))


# The reasons of a host whose server has just begun.
_FIRST = ("EngineStarting",)
_HOST_FIXES = {
    "QemuMissing": "Install QEMU (Debian: apt install qemu-system-x86 qemu-utils); it is looked for again by itself.",
    "NetworkUnusable": "Do what the message says; without rights to make networks: paddock up --network user. It is tried again.",
    "EngineFailed": "Mend what the message names (rights, room in --dir); it is tried again, and the server's log says more.",
    "ControllersFailed": "It is started again by itself; if it comes back, report it with the server's log.",
}


def _emulated(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    for saying in _sayings_of_instances(view, "SoftwareEmulation"):
        yield _hint(rule, saying, "The guest is emulated, without KVM, and slower by far.")


def _simulated(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    for saying in _sayings_of_instances(view, "SimulatedGuest"):
        yield _hint(rule, saying, "The guest is simulated: nothing runs in the machine, and nothing answers at its address.")


def _sayings_of_instances(view: RuleView, condition: str) -> Iterator[Statement]:
    """Yield a condition of instances that is True."""
    for saying in view.sayings:
        if saying.type == condition and saying.status == "True" and saying.node.ref.kind == "VirtualMachineInstance":
            yield saying


def _alone(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    for saying in view.sayings:
        why, _, lifted = saying.message.partition("no pod network: ")[2].partition("; to lift it: ")
        if saying.type == "NetworkLimited" and saying.status == "True" and lifted:
            yield _hint(rule, saying, f"The machine is alone in user mode: {why}; to lift it: {lifted.partition('; ')[0]}.")


def _hint(rule: DiagnosisRule, saying: Statement, cause: str) -> Diagnosis:
    seen = Evidence(f"{saying.field}.message", saying.message, saying.since)
    return rule.found(saying.node, cause, rank=CauseDepth.SAID, seen=seen)


LOOKS: Mapping[str, Look] = {
    "host-not-ready": _silent,
    "host-starting": _silent,
    "emulated": _emulated,
    "simulated": _simulated,
    "user-mode": _alone,
}
