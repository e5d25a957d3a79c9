#!/bin/sh
# card-up NAME: the card is switched on and asks for an address, for ever if need be; the first answer is waited for.
ip link set "$1" up
read -r kept </proc/sys/kernel/hostname
exec udhcpc -i "$1" -s /sbin/on-lease -p "/run/udhcpc.$1" -x "hostname:$kept" -O mtu -O search -O staticroutes -O ntpsrv \
    -t 4 -T 1 -b -S >/dev/null 2>&1
