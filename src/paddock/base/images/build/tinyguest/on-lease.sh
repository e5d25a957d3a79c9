#!/bin/sh
# What DHCP says is done: address, routes, name servers, MTU, host name. It is all kept below /run/net/CARD, too.
folder=/run/net/$interface
case $1 in
deconfig)
    ip addr flush dev "$interface" scope global
    rm -rf "$folder"
    ;;
bound | renew)
    mkdir -p "$folder"
    set | grep -E '^(ip|mask|subnet|router|dns|domain|search|mtu|hostname|staticroutes|serverid|lease|ntpsrv|opt[0-9]+)=' >"$folder/lease"
    echo "$ip" >"$folder/address"
    [ -n "$mtu" ] && ip link set "$interface" mtu "$mtu"
    ip addr replace "$ip/${mask:-24}" broadcast + dev "$interface"
    if [ -n "$staticroutes" ]; then
        # Pairs of destination and gateway; beside them the router option counts for nothing (RFC 3442).
        set -- $staticroutes
        while [ $# -ge 2 ]; do
            if [ "$2" = 0.0.0.0 ]; then ip route replace "$1" dev "$interface"; else ip route replace "$1" via "$2" dev "$interface" onlink; fi
            shift 2
        done
    else
        for gateway in $router; do
            ip route replace default via "$gateway" dev "$interface" onlink && break
        done
    fi
    {
        [ -n "${search:-$domain}" ] && echo "search ${search:-$domain}"
        for server in $dns; do echo "nameserver $server"; done
    } >"$folder/resolv.conf"
    cat /run/net/*/resolv.conf >/etc/resolv.conf
    [ -n "$hostname" ] && [ ! -f /run/hostname-is-set ] && hostname "$hostname"
    ;;
esac
