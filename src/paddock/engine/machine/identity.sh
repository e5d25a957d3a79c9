# Makes a clone of a guest another machine: sh -s -- HOSTNAME SECONDS [OLDMAC=NEWMAC ...], as root. A line before this one sets `seed`,
# which no list of processes shows so. What a guest has not got is passed over.
name=$1 now=$2
shift 2

# The clock stood still with the guest.
date -u -s "@$now" >/dev/null 2>&1

# Two clones must not draw the same random numbers. The kernel is told by its generation counter, too, where it knows that.
printf '%s' "$seed" >/dev/urandom 2>/dev/null

if [ -n "$name" ]; then
    if [ -d /run/systemd/system ] && command -v hostnamectl >/dev/null 2>&1; then
        hostnamectl set-hostname "$name" >/dev/null 2>&1
    fi
    hostname "$name" 2>/dev/null || printf '%s' "$name" >/proc/sys/kernel/hostname
    [ ! -w /etc/hostname ] || printf '%s\n' "$name" >/etc/hostname
fi
if [ -w /etc/machine-id ]; then
    tr -d - </proc/sys/kernel/random/uuid >/etc/machine-id
fi

# Cards: a new address, then a new lease.
for pair in "$@"; do
    old=${pair%%=*} new=${pair#*=}
    for card in /sys/class/net/*; do
        read -r address <"$card/address" 2>/dev/null || continue
        [ "$address" = "$old" ] || continue
        card=${card##*/}
        ip link set "$card" down
        ip link set "$card" address "$new" || exit 3
        ip addr flush dev "$card" scope global
        ip link set "$card" up
    done
done

# Host keys.
if [ -d /etc/dropbear ] && command -v dropbear >/dev/null 2>&1; then
    rm -f /etc/dropbear/*_host_key
    for pid in $(pidof dropbear); do kill "$pid"; done
    dropbear -R >/dev/null 2>&1
fi
if ls /etc/ssh/ssh_host_*_key >/dev/null 2>&1 && command -v ssh-keygen >/dev/null 2>&1; then
    rm -f /etc/ssh/ssh_host_*
    ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/ssh_host_ed25519_key </dev/null >/dev/null 2>&1
    if [ -d /run/systemd/system ]; then
        systemctl --no-block try-restart ssh.service sshd.service >/dev/null 2>&1
    else
        for pid in $(pidof sshd); do kill -HUP "$pid"; done
    fi
fi
exit 0
