#!/bin/bash
# On each of two hosts that are connected by a cable: test/rdma/hosts/*.test.ts, the same tests at the same time.
source "$(dirname "$0")/device.sh"
export ONESIDED_TEST_HOSTS=2
tests together || exit 1
# The second host is killed in these, so it says now that it has come so far.
[ "$ONESIDED_TEST_HOST" = 1 ] && echo 'onesided-guest: exit code 0'
tests killed
