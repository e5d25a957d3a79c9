#!/bin/sh
# What systemctl does with the one service that the tests start and stop: init runs the agent, and begins it anew when it ends.
[ "$(eval echo "\${$#}" | sed 's/\.service$//')" = qemu-guest-agent ] || { echo "Unit not found." >&2; exit 5; }
agent() { for each in /proc/[0-9]*; do case $(tr '\0' ' ' <"$each/cmdline" 2>/dev/null) in "sleep 1000000 " | /usr/sbin/qemu-ga*) kill "${each#/proc/}" ;; esac; done; }
case "$*" in
stop* | "disable --now"*) : >/run/agent-stopped && agent ;;
start* | restart* | "enable --now"*) rm -f /run/agent-stopped && agent ;;
is-active*) [ ! -e /run/agent-stopped ] && echo active ;;
esac
