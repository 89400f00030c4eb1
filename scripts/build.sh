#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
#
# Configures and builds the program: build/release/bin/lockstep.
#
#   scripts/build.sh [PRESET] [cmake options]      PRESET: release (default), debug, asan, tsan, ci
#
# JOBS=N limits the compilers that run at one time; default: the number of cores.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case "${1-}" in
  -h | --help) print_help; exit 0 ;;
esac
preset=release
if [ $# -gt 0 ] && [[ "$1" != -* ]]; then
  preset="$1"
  shift
fi
options=("$@")
# The program alone needs neither GoogleTest nor Google Benchmark. A build folder that has its settings keeps them.
if [ "$preset" = release ] && [ ! -f build/release/CMakeCache.txt ]; then
  options=(-DLOCKSTEP_TESTS=OFF -DLOCKSTEP_BENCH=OFF "${options[@]}")
fi

say "Configuring build/$preset"
cmake --log-level=NOTICE --preset "$preset" "${options[@]}"
say "Building build/$preset"
cmake --build "build/$preset" --parallel "${JOBS:-$(nproc)}"
