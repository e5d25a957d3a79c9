#!/bin/sh
# The guest's agent, until systemctl stops it. What it is asked stands in the log, as the journal of the original has it.
port=/dev/virtio-ports/org.qemu.guest_agent.0
[ -e $port ] && [ -x /usr/sbin/qemu-ga ] && [ ! -e /run/agent-stopped ] || exec sleep 1000000
BLACKLIST_RPC=$(sed -n 's/^BLACKLIST_RPC=//p' /etc/sysconfig/qemu-ga | tail -n 1)
exec /usr/sbin/qemu-ga -m virtio-serial -p $port -F/etc/qemu-ga/fsfreeze-hook ${BLACKLIST_RPC:+-b "$BLACKLIST_RPC"} >/dev/null 2>&1
