#!/bin/sh
# The links that udev makes of the serial numbers of disks.
mkdir -p /dev/disk/by-id
for link in /dev/disk/by-id/*; do [ -e "$link" ] || rm -f "$link"; done
for block in /sys/block/vd* /sys/block/sd* /sys/block/sr*; do
    [ -e "$block" ] || continue
    name=${block##*/} serial=
    if [ -f "$block/serial" ]; then
        read -r serial <"$block/serial"
        [ -z "$serial" ] || ln -sf "../../$name" "/dev/disk/by-id/virtio-$serial"
    elif [ -f "$block/device/vpd_pg80" ]; then
        serial=$(tail -c +5 "$block/device/vpd_pg80" | tr -d '\000 ')
        [ -z "$serial" ] || ln -sf "../../$name" "/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_$serial"
    fi
done
