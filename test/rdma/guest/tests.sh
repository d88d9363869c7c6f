#!/bin/bash
# One host: test/rdma/*.test.ts, or those whose names have the word that is asked for.
source "$(dirname "$0")/device.sh"
tests $(option only)
