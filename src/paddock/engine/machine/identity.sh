# Makes a guest with the memory of another one a machine of its own: sh -s -- HOSTNAME SECONDS [OLDMAC=NEWMAC ...], as root. A line before
# this one sets `seed`, which no list of processes shows so. What a guest has not got is passed over. With `check` instead of the seconds,
# it only finds out whether that can be done.
name=$1 now=$2
shift 2

# Two guests with one memory must not draw the same random numbers. What is written is mixed in, and used at the kernel's next reseeding,
# which is a minute away unless it is asked for (RNDRESEEDCRNG) or the generation counter has caused it. A guest without perl and python3
# gets a program that does nothing else: open("/dev/random", O_RDWR), ioctl(3, RNDRESEEDCRNG), exit.
reseed() {
    if command -v perl >/dev/null 2>&1; then
        perl -e 'open(my $pool, "+<", "/dev/random") or exit 1; exit(defined(ioctl($pool, 0x5207, 0)) ? 0 : 1)' && return 0
    fi
    if command -v python3 >/dev/null 2>&1; then
        python3 -c 'import fcntl; fcntl.ioctl(open("/dev/random", "wb"), 0x5207)' && return 0
    fi
    [ "$(uname -m)" = x86_64 ] || return 1
    for folder in /run /dev/shm /tmp; do
        file=$folder/.paddock-reseed
        program >"$file" 2>/dev/null && chmod 700 "$file" && "$file" && rm -f "$file" && return 0
        rm -f "$file"
    done
    return 1
}
program() {
    printf '\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\2\0>\0\1\0\0\0x\0@\0\0\0\0\0@\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0@\0'
    printf '\70\0\1\0\0\0\0\0\0\0\1\0\0\0\5\0\0\0\0\0\0\0\0\0\0\0\0\0@\0\0\0\0\0\0\0@\0\0\0\0\0\264\0\0\0\0\0\0\0'
    printf '\264\0\0\0\0\0\0\0\0\20\0\0\0\0\0\0\270\2\0\0\0\277\250\0@\0\276\2\0\0\0\17\5\211\307\276\7R\0\0\61\322'
    printf '\270\20\0\0\0\17\5\61\377\205\300@\17\225\307\270<\0\0\0\17\5/dev/random\0'
}
has_counter() {
    for device in /sys/bus/acpi/drivers/vmgenid/*:*; do
        [ ! -e "$device" ] || return 0
    done
    return 1
}
[ -z "$seed" ] || printf '%s' "$seed" >/dev/urandom
reseed || has_counter || exit 4
[ "$now" != check ] || exit 0

# The clock stood still with the guest.
date -u -s "@$now" >/dev/null 2>&1

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
