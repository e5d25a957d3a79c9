#!/bin/sh
# What is plugged while the guest runs: a card gets an address, a processor is switched on, a port gets its name.
case $ACTION:$SUBSYSTEM in
add:net) [ ! -e "/sys$DEVPATH/device" ] || /sbin/card-up "${DEVPATH##*/}" & ;;
add:cpu) echo 1 >"/sys$DEVPATH/online" ;;
add:memory) grep -q online "/sys$DEVPATH/state" || echo online >"/sys$DEVPATH/state" ;;
add:virtio-ports) read -r name <"/sys$DEVPATH/name" && ln -sf "../${DEVPATH##*/}" "/dev/virtio-ports/$name" ;;
esac
