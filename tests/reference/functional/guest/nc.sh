#!/bin/sh
# nc -klp PORT -e PROGRAM: what others call -k, BusyBox calls a second -l.
case $1 in
-klp) port=$2 && shift 2 && exec /bin/busybox nc -ll -p "$port" "$@" ;;
esac
exec /bin/busybox nc "$@"
