#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Adds a user of vapro to users.conf beside the broker's configuration, and prints the address for its owner.
#
#   add_user.sh USERS node CLUSTER HOST    a node: publishes under its own host only, reads its own requests and replies
#   add_user.sh USERS worker CLUSTER NAME  a worker: reads blocks, writes results, state and requests; is no node
#   add_user.sh USERS reader CLUSTER NAME  a person or program that reads results (vapro view --broker)
#   add_user.sh USERS analyst CLUSTER NAME one that reads blocks, too (vapro analyze --broker, vapro diagnose --broker)
#
# Reload the broker afterwards: nats-server --signal reload.
set -euf # a * of a subject is no file
umask 077

[ $# = 4 ] || {
	sed -n '3,10s/^# \{0,1\}//p' "$0" >&2
	exit 2
}
users=$1 role=$2 cluster=$3 name=$4

# a token of a subject (docs/publishing.md), for the letters that names of hosts and clusters have
token() {
	case $1 in
	*[!A-Za-z0-9._-]* | '')
		echo "add_user.sh: '$1': a name has letters, digits, '.', '-' and '_'" >&2
		exit 2
		;;
	esac
	echo "$1" | sed 's/\./=2E/g'
}
c=$(token "$cluster")
n=$(token "$name")

case $role in
node)
	publish="\"vapro.v1.in.$c.*.$n\", \"\$JS.API.STREAM.INFO.vapro_in\""
	subscribe="\"vapro.v1.req.$c.$n\", \"_INBOX_$n.>\""
	;;
worker)
	publish="\"vapro.v1.out.$c.>\", \"vapro.v1.state.$c.>\", \"vapro.v1.req.$c.>\", \"\$JS.API.>\", \"\$JS.ACK.>\", \"\$KV.>\""
	subscribe="\"vapro.v1.out.$c.>\", \"vapro.v1.state.$c.>\", \"\$KV.>\", \"_INBOX.>\""
	;;
reader | analyst)
	# to read a stream by a consumer of the own
	publish=
	for stream in vapro_out $([ "$role" = reader ] || echo vapro_in); do
		for request in STREAM.INFO.$stream CONSUMER.CREATE.$stream CONSUMER.INFO.$stream.* \
			CONSUMER.DELETE.$stream.* CONSUMER.MSG.NEXT.$stream.*; do
			publish="$publish${publish:+, }\"\$JS.API.$request\""
		done
	done
	subscribe="\"vapro.v1.out.$c.>\", \"_INBOX.>\""
	;;
*)
	echo "add_user.sh: '$role' is no role: node, worker, reader or analyst" >&2
	exit 2
	;;
esac

password=$(od -An -N18 -tx1 /dev/urandom | tr -d ' \n')
[ -s "$users" ] || printf '# written by add_user.sh\nusers = [\n]\n' >"$users"
if grep -q "user: \"$role-$n\"" "$users"; then
	echo "add_user.sh: $role-$n is in $users; remove its line first" >&2
	exit 1
fi
sed -i '$d' "$users"
cat >>"$users" <<END
  { user: "$role-$n", password: "$password", permissions: { publish: [$publish], subscribe: [$subscribe] } }
]
END
echo "nats://$role-$n:$password@BROKER:4222"
