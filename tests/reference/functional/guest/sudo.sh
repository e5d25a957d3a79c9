#!/bin/sh
# Every user of this guest is root under another name, so there is nothing to grant.
while :; do
    case $1 in
    -u | -g) shift 2 ;;
    -*) shift ;;
    *) break ;;
    esac
done
case $1 in
su | bash | sh)
    shift
    [ "$1" != -c ] || exec /bin/sh "$@"
    [ "$1" != - ] || cd /root || exit
    PS1=$ROOT_PROMPT exec /bin/sh -i
    ;;
esac
exec "$@"
