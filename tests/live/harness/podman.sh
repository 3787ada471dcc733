#!/bin/sh
# Runs podman of an engine that fetch_engine.sh has made:
#   podman.sh ENGINE SHARED WORD...
# It sees the checkout as /checkout, the folder SHARED as /shared, and as /run/authorities.crt the certificate
# authorities that pip and uv are given here. It is the first process of a name space of its own: with it end all of its
# containers. A second one waits, because it would take the containers of the first for those before a restart.
set -eu

checkout=$(cd -- "$(dirname -- "$0")/../../.." && pwd)
if [ "${LAGCAST_PODMAN:-}" != inside ]; then
    LAGCAST_PODMAN=inside
    export LAGCAST_PODMAN
    exec flock --no-fork "$1/lock" unshare --mount --pid --fork --kill-child "$0" "$@"
fi
unset LAGCAST_PODMAN
cd "$checkout"
. scripts/authorities

root="$1/root"
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
# crun wants one hierarchy of control groups, whichever this machine has; no container is put into a group.
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/run"
mount --bind -o ro "$checkout" "$root/checkout"
mount --bind "$2" "$root/shared"
mkdir -p "$root/var/lib/containers"
mount --bind "$1/storage" "$root/var/lib/containers"
cat /etc/resolv.conf >"$root/etc/resolv.conf"
cat /etc/hosts >"$root/etc/hosts"
cat ${authorities:+"$authorities"} >"$root/run/authorities.crt" </dev/null
shift 2
exec chroot "$root" podman --cgroup-manager=cgroupfs --events-backend=none "$@"
