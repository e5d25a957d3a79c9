"""Causes that the server finds by watching its host, QEMU and guests: reasons of its own in conditions and events."""

from paddock.cli.diagnosis.told import EventCause
from paddock.plan.changes.references import INSTANCE, MACHINE

HOST: tuple[EventCause, ...] = (
    EventCause(
        id="host-not-ready",
        title="The host does not answer, or is not ready.",
        fix="See whether the host and Paddock (or its kubelet) run: kubectl describe node HOST.",
        reason=("HostNotReady",),
        cause="The host is not ready: {message}",
    ),
)
GUEST: tuple[EventCause, ...] = (
    EventCause(
        id="qemu-stopped",
        title="QEMU is stopped by a signal (SIGSTOP, or a debugger), and its guest with it.",
        fix="Let it go on: kill -CONT PID (ps -eo pid,stat,args shows it in state T); or start it anew: virtctl restart NAME.",
        reason=("ProcessStopped",),
        of=(INSTANCE, MACHINE),
        cause="QEMU is stopped by a signal, and its guest with it: {message}",
    ),
    EventCause(
        id="qemu-unresponsive",
        title="QEMU does not answer: it hangs, or waits for the host's disk.",
        fix="Look at the host's load and disks (dmesg, iostat); if it stays so: virtctl stop NAME --force --grace-period=0, then start it.",
        reason=("MonitorUnresponsive",),
        of=(INSTANCE, MACHINE),
        cause="QEMU does not answer: {message}",
    ),
    EventCause(
        id="guest-hung",
        title="The guest hangs: QEMU answers, and the guest's agent no longer does.",
        fix="Look at its screen and console (virtctl vnc NAME, virtctl console NAME), then: virtctl restart NAME --force --grace-period=0.",
        reason=("GuestNotResponding",),
        of=(INSTANCE, MACHINE),
        cause="The guest hangs: {message}",
    ),
    EventCause(
        id="guest-reboot-loop",
        title="The guest resets itself again and again before it is up, often because its kernel panics.",
        fix="Read why on its console (virtctl console NAME), then mend its kernel, its initramfs or the disk it boots from.",
        reason=("GuestRebootLoop",),
        of=(INSTANCE, MACHINE),
        cause="The guest resets itself again and again before it is up: {message}",
    ),
    EventCause(
        id="agent-not-responding",
        title="The guest's agent does not answer, although its channel is open.",
        fix="See in the guest whether it is busy or hangs (virtctl console NAME): systemctl restart qemu-guest-agent.",
        reason=("AgentNotResponding",),
        of=(INSTANCE,),
        cause="The guest's agent does not answer: {message}",
        mood="notice",
    ),
)
HEALTH = (*HOST, *GUEST)
