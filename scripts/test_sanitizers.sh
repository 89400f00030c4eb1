#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
#
# Builds and runs the tests of everything that has threads (session, hooks, coordinator, queues, saver, writer, watchdog,
# collectives) with ThreadSanitizer and with AddressSanitizer and UndefinedBehaviorSanitizer. Ends at the first that fails.
#
#   scripts/test_sanitizers.sh [tsan] [asan] [-R PATTERN]     default: both, and the pattern below
#
# JOBS=N limits compilers that run at one time; default: the number of cores. The tests run one after the other.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# Names of tests, as a regular expression of CTest. The programs that they are of are what is built.
pattern='^(core_(coordinator|bounded_queue|queue_runner|timed_service|thread_pool|trace|fault)_test|comm_unit_test'
pattern+='|checkpoint_(writer|store|retention|faults)_test|driver_(saver|trainer|checkpoint_schedule|monitored_session)_test'
pattern+='|(comm|hooks|training)_mpi_test\.[23]_ranks)$'
presets=()
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) print_help; exit 0 ;;
    tsan | asan) presets+=("$1") ;;
    -R) [ $# -gt 1 ] || fail "-R needs a pattern"; pattern="$2"; shift ;;
    *) fail "'$1' is not tsan, asan or -R PATTERN" ;;
  esac
  shift
done
[ ${#presets[@]} -gt 0 ] || presets=(tsan asan)
allow_mpirun_as_root

for preset in "${presets[@]}"; do
  say "Configuring build/$preset"
  cmake --log-level=NOTICE --preset "$preset"
  # A test of several ranks is named program.2_ranks.
  mapfile -t targets < <(ctest --test-dir "build/$preset" -N -R "$pattern" |
    sed -n 's/^ *Test *#[0-9]*: *\([A-Za-z0-9_]*\).*/\1/p' | sort -u)
  [ ${#targets[@]} -gt 0 ] || fail "no test has a name like $pattern"
  say "Building in build/$preset: ${targets[*]}"
  cmake --build "build/$preset" --parallel "${JOBS:-$(nproc)}" --target "${targets[@]}"
  say "Testing in build/$preset"
  ctest --test-dir "build/$preset" -R "$pattern" --output-on-failure
done
