#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
#
# Trains an example for 20 steps on one rank and on two, and compares the weights.
#
#   packaging/debian/try_program.sh PROGRAM CONFIGURATION
set -euo pipefail
[ $# = 2 ] || { echo "error: give a program and a configuration" >&2; exit 2; }
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 HOME="$folder"
"$1" --version
for ranks in 1 2; do
  mpirun -n "$ranks" "$1" train "$2" --run-dir "$folder/$ranks" --steps 20 --threads 1 --quiet
  "$1" inspect "$folder/$ranks" --digest >"$folder/$ranks.digest"
done
cat "$folder/1.digest"
cmp "$folder/1.digest" "$folder/2.digest"
