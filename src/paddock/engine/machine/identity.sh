# Makes a clone of a guest another machine: sh -s -- HOSTNAME SECONDS [OLDMAC=NEWMAC ...], as root. A line before this one sets `seed`,
# which no list of processes shows so. What a guest has not got is passed over.
name=$1 now=$2
shift 2

# The clock stood still with the guest.
date -u -s "@$now" >/dev/null 2>&1

# Two clones must not draw the same random numbers: everything below would be the same in both. What is written is mixed in, and used at
# the kernel's next reseeding, which is a minute away unless it is asked for (RNDRESEEDCRNG) or the generation counter has caused it.
printf '%s' "$seed" >/dev/urandom
reseeded=
if command -v perl >/dev/null 2>&1; then
    perl -e 'open(my $pool, "+<", "/dev/random") or exit 1; exit(defined(ioctl($pool, 0x5207, 0)) ? 0 : 1)' && reseeded=yes
fi
if [ -z "$reseeded" ] && command -v python3 >/dev/null 2>&1; then
    python3 -c 'import fcntl; fcntl.ioctl(open("/dev/random", "wb"), 0x5207)' && reseeded=yes
fi
for device in /sys/bus/acpi/drivers/vmgenid/*:*; do
    [ ! -e "$device" ] || reseeded=yes
done
[ -n "$reseeded" ] || exit 4

if [ -n "$name" ]; then
    hostname "$name" 2>/dev/null || printf '%s' "$name" >/proc/sys/kernel/hostname
    [ ! -w /etc/hostname ] || printf '%s\n' "$name" >/etc/hostname
fi
if [ -w /etc/machine-id ]; then
    tr -d - </proc/sys/kernel/random/uuid >/etc/machine-id
fi

# Cards: a new address, then a new lease.
for pair in "$@"; do
    old=${pair%%=*} new=${pair#*=}
    # Where the network's configuration knows the card by its address.
    for file in /run/systemd/network/*.network /etc/systemd/network/*.network; do
        [ ! -f "$file" ] || sed -i "s/^MACAddress=$old\$/MACAddress=$new/" "$file"
    done
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
    # It reads its keys anew, and keeps its process. Asking a service manager would take longer than all the rest.
    for file in /run/sshd.pid /var/run/sshd.pid; do
        read -r pid <"$file" 2>/dev/null && kill -HUP "$pid" && break
    done
fi
exit 0
