#!/bin/sh
# Disks that come and go get their links; everything else is the tiny guest's.
[ "$SUBSYSTEM" != block ] || /sbin/by-id
exec /sbin/tiny-on-uevent "$@"
