#!/bin/sh
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
#
# enter_host.sh ADDRESS COMMAND...: replaces ssh to a real host (mpirun's plm_rsh_agent). Runs the command in the network
# namespace whose number is the last part of the address, under that host's name.
set -eu
number="${1##*.}"
shift
exec ip netns exec "$LOCKSTEP_HOSTS-$number" unshare --uts sh -c "hostname $LOCKSTEP_HOSTS-$number && $*"
