#!/bin/bash
# One host: test/rdma/*.test.ts.
source "$(dirname "$0")/device.sh"
tests
