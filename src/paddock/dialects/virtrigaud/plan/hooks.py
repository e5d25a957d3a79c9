"""The hooks around power changes: when one runs, and what is recorded of it (docs/spec/virtrigaud.md 2.1.6).

The record of a hook is a condition of the machine. It is written before the hook runs, so each runs at most once per transition, also when
the manager ends in between: a hook that was begun and has no result counts as failed.

    preStop    before a running machine is powered off or deleted; over again when the machine was seen on since
    postStart  after the machine was seen on; over again when it was seen off since
"""

from collections.abc import Sequence

from paddock.dialects.virtrigaud.kinds.machine import LifecycleHandler
from paddock.dialects.virtrigaud.kinds.shared import StatusCondition
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.plan import reasons
from paddock.dialects.virtrigaud.plan.conditions import AspectValue, find

PRE_STOP, POST_START = "PreStop", "PostStart"


def handler(vm: VirtrigaudVirtualMachine, hook: str) -> LifecycleHandler | None:
    """The handler of a hook, if the machine has one."""
    lifecycle = vm.spec.lifecycle
    if lifecycle is None:
        return None
    return lifecycle.preStop if hook == PRE_STOP else lifecycle.postStart


def is_due(vm: VirtrigaudVirtualMachine, hook: str, conditions: Sequence[StatusCondition] | None) -> bool:
    """Return whether a hook has to run in the present transition."""
    return handler(vm, hook) is not None and find(conditions, hook) is None


def was_interrupted(hook: str, conditions: Sequence[StatusCondition] | None) -> bool:
    """Return whether a hook was begun and has no result."""
    found = find(conditions, hook)
    return found is not None and found.reason == reasons.HOOK_RUNNING


def begun(hook: str) -> AspectValue:
    """The record of a hook that runs."""
    return AspectValue(hook, "Unknown", reasons.HOOK_RUNNING, f"the {hook} hook runs")


def interrupted(hook: str) -> AspectValue:
    """The record of a hook whose result nobody knows."""
    text = f"the manager ended while the {hook} hook ran; it does not run again in this transition"
    return AspectValue(hook, "False", reasons.HOOK_FAILED, text)


def result(hook: str, problem: str) -> AspectValue:
    """The record of a hook that has ended; `problem` is empty when it succeeded."""
    if problem:
        return AspectValue(hook, "False", reasons.HOOK_FAILED, f"the {hook} hook failed: {problem}")
    return AspectValue(hook, "True", reasons.HOOK_SUCCEEDED, f"the {hook} hook succeeded")
