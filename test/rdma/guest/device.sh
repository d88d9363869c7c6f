# Sourced by the scripts that run in a guest, as root, from the host's files: brings a Soft-RoCE device up, with an
# address that says which guest it is.
set -u
option() { sed -n "s/.*onesided\.$1=\([^ ]*\).*/\1/p" /proc/cmdline; }
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
export PATH="$(option path):/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
export HOME=/run TMPDIR=/run NO_COLOR=1 CI=1 ONESIDED_TEST_RESULTS=/run/conformance/
ONESIDED_TEST_HOST=$(option host)
export ONESIDED_TEST_HOST
ulimit -l unlimited
hostname "host$ONESIDED_TEST_HOST"
ip link set lo up
ip addr add "10.9.0.$((ONESIDED_TEST_HOST + 1))/24" dev eth0
ip link set eth0 up
# Multicast groups are looked up like any other address.
ip route add 224.0.0.0/4 dev eth0
rdma link add rxe0 type rxe netdev eth0 || exit 1
for _ in $(seq 50); do grep -q ACTIVE /sys/class/infiniband/rxe0/ports/1/state && break; sleep 0.1; done
node dist/cli/main.js info || exit 1
tests() { node node_modules/vitest/vitest.mjs run --configLoader native --config test/rdma/vitest.config.mjs "$@"; }
