#!/bin/sh
# mokutil --sb-state: the last byte of the variable of the firmware.
[ "$(tail -c 1 /sys/firmware/efi/efivars/SecureBoot-* | od -An -tu1 | tr -d ' ')" = 1 ] && echo "SecureBoot enabled" || echo "SecureBoot disabled"
