# Installs Debian packages of servers without a server of the system coming up with them.
#
# Arguments: the packages. Leaves nothing behind but the packages: what keeps their services from
# starting is removed at the end, however that comes.
set -eu
export DEBIAN_FRONTEND=noninteractive

# Asked by every package before it starts a service; 101 means no.
policy=/usr/sbin/policy-rc.d
# Read by Postgres' package before it makes a data folder of the system's own.
clusters=/etc/postgresql-common/createcluster.d
no_cluster=$clusters/no-main-cluster.conf

made=
trap 'rm -f $made "$no_cluster"; rmdir "$clusters" 2>/dev/null || :' EXIT
trap 'exit 130' INT TERM

if [ ! -e "$policy" ]; then
    made=$policy
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi
mkdir -p "$clusters"
echo "create_main_cluster = false" >"$no_cluster"

apt-get update -qq
apt-get install -y -qq --no-install-recommends "$@"
