#!/bin/sh
# chpasswd [-e]: "user:password" lines; -e: they are encrypted already.
while IFS=: read -r user word; do
    grep -q "^$user:" /etc/shadow || { echo "chpasswd: no user $user" >&2; exit 1; }
    [ "$1" = -e ] || word=$(printf '%s\n' "$word" | mkpasswd -m sha512 -P 0)
    word=$word awk -F: -v OFS=: -v user="$user" '{ if ($1 == user) $2 = ENVIRON["word"]; print }' /etc/shadow >/etc/shadow.new
    cat /etc/shadow.new >/etc/shadow
    rm /etc/shadow.new
done
