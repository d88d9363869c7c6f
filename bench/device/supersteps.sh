#!/bin/bash
# Runs in each of two guests of scripts/test-rdma.mjs that are connected by a cable. Expects options of
# supersteps.ts in OPTIONS.
source "$(dirname "${BASH_SOURCE[0]}")/../../test/rdma/guest/device.sh"
node build/programs/bench/device/supersteps.js "${OPTIONS[@]}"
