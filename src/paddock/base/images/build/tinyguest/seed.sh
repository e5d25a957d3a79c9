#!/bin/sh
# The part of cloud-init that this guest has: NoCloud and ConfigDrive with host name, SSH keys, password, mounts and runcmd; or a script.
# A runcmd or a script is run once for each instance-id, if there is a data disk to remember it on.
folder=/run/seed
source=
for label in cidata CIDATA config-2 CONFIG-2; do
    device=$(findfs LABEL=$label 2>/dev/null) || continue
    mkdir -p $folder /run/cloud-init
    mount -t iso9660 -o ro "$device" $folder 2>/dev/null || mount -t vfat -o ro "$device" $folder 2>/dev/null || continue
    source=$device
    break
done
[ -n "$source" ] || exit 0
case $label in
cidata | CIDATA)
    datasource=DataSourceNoCloud
    meta=$folder/meta-data
    user=$folder/user-data
    ;;
*)
    datasource=DataSourceConfigDrive
    meta=$folder/openstack/latest/meta_data.json
    user=$folder/openstack/latest/user_data
    ;;
esac

# said KEY FILE: a member of the outermost level of YAML, or of JSON in any layout
said() { sed -n "s/^ *[{,]* *\"\{0,1\}$1\"\{0,1\} *: *//p" "$2" 2>/dev/null | sed -n '1{s/[[:space:]]*$//;s/,$//;s/^"\(.*\)"$/\1/;s/^'"'"'\(.*\)'"'"'$/\1/;p;}'; }
# listed KEY FILE: the items of a list, one a line; quotes around an item go, a list in a list becomes words
listed() {
    awk -v key="$1" '
        function plain(text) {
            sub(/^[ ]*-[ ]+/, "", text); sub(/[ ]+$/, "", text)
            if (text ~ /^\[.*\]$/) { text = substr(text, 2, length(text) - 2); gsub(/,[ ]*/, " ", text); return text }
            if (text ~ /^".*"$/ || text ~ /^\047.*\047$/) text = substr(text, 2, length(text) - 2)
            return text
        }
        $0 ~ "^[ -]*" key ":[ ]*$" { inside = 1; next }
        inside && /^[ ]*-[ ]/ { print plain($0); next }
        inside && /^[ ]*(#.*)?$/ { next }
        { inside = 0 }' "$2" 2>/dev/null
}
tr '{},' '\n\n\n' <"$meta" >/run/meta-data 2>/dev/null

name=$(said hostname "$user")
[ -n "$name" ] || name=$(said local-hostname /run/meta-data)
[ -n "$name" ] || name=$(said local_hostname /run/meta-data)
[ -n "$name" ] || name=$(said hostname /run/meta-data)
[ -n "$name" ] && hostname "$name" && touch /run/hostname-is-set

for home in /root /home/tiny; do
    mkdir -p $home/.ssh
    { grep -oE '"(ssh-|ecdsa-|sk-)[^"]*"' "$meta" | tr -d '"'; listed ssh_authorized_keys "$user"; } >>$home/.ssh/authorized_keys 2>/dev/null
    chmod 700 $home/.ssh
    chmod 600 $home/.ssh/authorized_keys
done
chown -R tiny:tiny /home/tiny

password=$(said password "$user")
[ -n "$password" ] && printf 'root:%s\ntiny:%s\n' "$password" "$password" | chpasswd

# Each entry is a list of a source, a place, a type and options, on one line or one member a line.
attach() { [ -z "$2" ] || { mkdir -p "$2" && mount -t "${3:-auto}" -o "$(echo "${4:-rw}" | sed 's/,*nofail//g')" "$1" "$2"; } || failed=mounts; }
entry=
listed mounts "$user" >/run/mounts
echo "- " >>/run/mounts
while read -r word; do
    case $word in
    "-" | "- "*) attach $entry; entry=${word#-} ;;
    *" /"*) attach $word ;;
    *) entry="$entry $word" ;;
    esac
done </run/mounts

instance=$(said instance-id /run/meta-data)
[ -n "$instance" ] || instance=$(said instance_id /run/meta-data)
[ -n "$instance" ] || instance=$(said uuid /run/meta-data)
if [ "$instance" != "$(cat /data/instance-id 2>/dev/null)" ] || [ -z "$instance" ]; then
    mountpoint -q /data 2>/dev/null || grep -q ' /data ' /proc/mounts && echo "$instance" >/data/instance-id
    read -r first <"$user"
    case $first in
    '#!'*)
        cp "$user" /run/user-script && chmod 700 /run/user-script && /run/user-script >>/var/log/cloud-init-output.log 2>&1
        [ $? = 0 ] || failed=scripts-user
        ;;
    *)
        listed runcmd "$user" >/run/runcmd
        [ ! -s /run/runcmd ] || sh /run/runcmd >>/var/log/cloud-init-output.log 2>&1 || failed=runcmd
        ;;
    esac
fi
errors=
[ -z "$failed" ] || errors="\"('$failed', RuntimeError('a command failed'))\""
printf '{"v1": {"datasource": "%s [seed=%s]", "errors": [%s]}}\n' "$datasource" "$source" "$errors" >/run/cloud-init/result.json
