#!/bin/bash
# Runs in a guest: ranks/layouts.ts on its Soft-RoCE device. With ONESIDED_GUEST_CLOCK=instructions, microseconds are
# thousands of instructions, of both ranks together:
#
#     ONESIDED_GUEST_CLOCK=instructions node scripts/test-rdma.mjs --script bench/device/layouts.sh
source "$(dirname "$0")/../../test/rdma/guest/device.sh" > /dev/null
node dist/cli/main.js run -n 2 --ranks processes --provider rdma-core --timeout 1000 \
  build/programs/bench/ranks/layouts.js
