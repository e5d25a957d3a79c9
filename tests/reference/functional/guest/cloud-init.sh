#!/bin/sh
# The questions that are asked of cloud-init.
case $1 in
status) if [ -e /run/started ]; then echo "status: done"; else echo "status: running"; fi ;;
query) cat /run/cloud-init/result.json ;;
esac
