#!/bin/bash
# Runs in the guest of scripts/test-rdma.mjs: brings a Soft-RoCE device up and measures on it. Expects the
# benchmark's options in OPTIONS, and to be in the package's folder.
set -u
folder_of_node="$(sed 's/.*onesided\.path=\([^ ]*\).*/\1/' /proc/cmdline)"
export PATH="$folder_of_node:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
export HOME=/run TMPDIR=/run NO_COLOR=1
ulimit -l unlimited
ip link set lo up
ip addr add 10.9.0.1/24 dev eth0
ip link set eth0 up
rdma link add rxe0 type rxe netdev eth0 || exit 1
for _ in $(seq 50); do grep -q ACTIVE /sys/class/infiniband/rxe0/ports/1/state && break; sleep 0.1; done
for gid in 0 1 2 3; do
  grep -qs 'RoCE v2' "/sys/class/infiniband/rxe0/ports/1/gid_attrs/types/$gid" &&
    grep -qs ':ffff:' "/sys/class/infiniband/rxe0/ports/1/gids/$gid" && break
done
export ONESIDED_DEVICE="rxe0:1:$gid"
node build/programs/bench/device/main.js "${OPTIONS[@]}"
