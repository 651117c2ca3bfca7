#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Prints a drop-in of vaprod.service that opens the network for publishing: for the addresses of the brokers that the
# configuration names, and for the name servers where a broker is given by name; for nothing else.
#     publish-unit.sh [CONFIG] > /etc/systemd/system/vaprod.service.d/publish.conf && systemctl daemon-reload
# CONFIG: a file in place of those of the site. VAPROD and RESOLV_CONF stand in for vaprod and /etc/resolv.conf.
set -eu

vaprod=${VAPROD:-vaprod}
resolv=${RESOLV_CONF:-/etc/resolv.conf}
if [ $# -gt 0 ]; then
	settings=$("$vaprod" --print-config --config "$1")
else
	settings=$("$vaprod" --print-config)
fi
brokers=$(printf '%s\n' "$settings" | sed -n 's/^broker = //p')
if [ -z "$brokers" ]; then
	echo "publish-unit.sh: the configuration names no broker (broker = nats://HOST)" >&2
	exit 1
fi

# host of nats://[user:password@]host[:port] or nats://[IPv6]:port
host_of() {
	rest=${1#*://}
	rest=${rest#*@}
	case "$rest" in
	\[*) rest=${rest#\[} && echo "${rest%%\]*}" ;;
	*) echo "${rest%%:*}" ;;
	esac
}

addresses=
names=
for url in $(printf '%s' "$brokers" | tr ',' ' '); do
	host=$(host_of "$url")
	case "$host" in
	*:*) ;; # an address
	*[!0-9.]*) names=yes ;;
	esac
	found=$(getent ahosts "$host" | awk '{ print $1 }' | sort -u)
	if [ -z "$found" ]; then
		echo "publish-unit.sh: the broker '$host' has no address here" >&2
		exit 1
	fi
	addresses="$addresses $found"
done
servers=
if [ -n "$names" ] && [ -r "$resolv" ]; then
	servers=$(awk '$1 == "nameserver" { sub(/%.*/, "", $2); print $2 }' "$resolv")
fi

cat <<EOF
# Made by publish-unit.sh of the broker setting; to be made again when addresses change.
[Unit]
After=network-online.target
Wants=network-online.target

[Service]
PrivateNetwork=no
RestrictAddressFamilies=AF_INET AF_INET6
# IPAddressDeny=any of the unit still holds for all others
EOF
printf '%s\n' $addresses $servers | awk '!seen[$0]++ { print "IPAddressAllow=" $0 }'
