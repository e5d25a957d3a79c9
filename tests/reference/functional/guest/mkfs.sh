#!/bin/sh
# mkfs.ext3 and mkfs.ext4: what BusyBox has of them is ext2, which the same mounts read.
for device; do :; done
exec mke2fs -F "$device"
