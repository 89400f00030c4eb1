#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
#
# Installs the packages that are missing, builds everything (preset ci) and runs all tests. Ends with CTest's summary.
#
#   scripts/test.sh [options of ctest, such as -R params or -L e2e]
#
# JOBS=N limits compilers and tests that run at one time; default: the number of cores.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case "${1-}" in
  -h | --help) print_help; exit 0 ;;
esac
scripts/install_dependencies.sh --test
scripts/build.sh ci
allow_mpirun_as_root

say "Testing"
exec ctest --preset ci --parallel "${JOBS:-$(nproc)}" "$@"
