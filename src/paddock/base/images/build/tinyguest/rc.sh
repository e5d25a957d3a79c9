#!/bin/sh
# Everything between the kernel and the READY line. What can go on by itself does; what is not there is passed over.
PATH=/bin:/sbin:/usr/bin:/usr/sbin
export PATH
step() { [ -z "$trace" ] || echo "$(cut -d" " -f1 /proc/uptime) $1" >/dev/console; }
mount -t proc proc /proc
mount -t sysfs sys /sys
[ -c /dev/null ] || mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/virtio-ports
mount -t devpts -o gid=5,mode=620,ptmxmode=666 devpts /dev/pts
if [ -f /lib/modules/order ]; then
    while read -r module; do insmod "/lib/modules/$module"; done </lib/modules/order 2>/dev/null
fi
step devices
hostname tiny
ip link set lo up
# Cards are set up while the rest goes on.
for card in /sys/class/net/*/device; do
    [ -e "$card" ] || continue
    card=${card%/device}
    /sbin/card-up "${card##*/}" &
done
for port in /sys/class/virtio-ports/*/name; do
    [ -f "$port" ] || continue
    read -r name <"$port" && folder=${port%/name} && ln -sf "../${folder##*/}" "/dev/virtio-ports/$name"
done
[ -d /sys/firmware/efi/efivars ] && mount -t efivarfs efivarfs /sys/firmware/efi/efivars 2>/dev/null
if data=$(findfs LABEL=tiny-data 2>/dev/null); then
    mount -t ext4 "$data" /data && mkdir -p /data/dropbear /data/www && rm -rf /etc/dropbear && ln -s /data/dropbear /etc/dropbear
fi
step cards
wait
step addresses
/sbin/seed
[ -e /dev/rtc0 ] && hwclock -s -u 2>/dev/null
step seed
acpid -l /var/log/acpid.log
uevent /sbin/on-uevent >/dev/null 2>&1 &
httpd -h /www
inetd 2>/dev/null
dropbear -R 2>/dev/null
hostname >/www/index.html
step services
addresses=$(cat /run/net/*/address 2>/dev/null | tr '\n' ' ')
echo "READY $(hostname) ${addresses}" >/dev/console
