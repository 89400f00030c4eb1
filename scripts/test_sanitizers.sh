#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
#
# Builds and runs tests with ThreadSanitizer, and with AddressSanitizer and UndefinedBehaviorSanitizer. Ends at the first
# sanitizer of which a test fails.
#
#   scripts/test_sanitizers.sh [tsan] [asan] [-R PATTERN]   tests whose names match; default: everything that has threads
#                                                           (session, hooks, coordinator, queues, saver, writer, watchdog,
#                                                           collectives)
#   scripts/test_sanitizers.sh asan --files                 everything that reads files: readers, checkpoints, configurations
#   scripts/test_sanitizers.sh asan --fuzz                  the fuzzers: configurations, options, data files, run directories
#
# Default: tsan, then asan. JOBS=N limits compilers that run at one time; default: the number of cores. The tests run one
# after the other. The fuzzers run as long as in CTest; tests/fuzz and docs/faults.md say how to run them longer.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# Names of tests, as regular expressions of CTest. The programs that they are of are what is built.
threads='^(core_(coordinator|bounded_queue|queue_runner|timed_service|thread_pool|trace|fault)_test|comm_unit_test'
threads+='|checkpoint_(writer|store|retention|faults)_test|session_(saver|checkpoint_schedule|stop_control|step_record)_test'
threads+='|train_(trainer|batch_source)_test|(comm|hooks|training)_mpi_test\.[23]_ranks)$'
files='^(core_(params|sizes|shape|scalar|name_pattern|synonyms|error_group|child_process|half|duration|hash)_test'
files+='|(data_reader|data_step_plan|prediction_file|input_file|event|metrics_log|run_lock|crc32c)_test'
files+='|checkpoint(_damage|_tools|_store|)_test|driver_(yaml_node|config|config_values|blocks|command_line)_test)$'
fuzz='^(config_fuzz|option_sweep|data_fuzz|crashing_file|faults_run_directory_fuzz)$'

pattern="$threads"
presets=()
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) print_help; exit 0 ;;
    tsan | asan) presets+=("$1") ;;
    --files) pattern="$files" ;;
    --fuzz) pattern="$fuzz" ;;
    -R) [ $# -gt 1 ] || fail "-R needs a pattern"; pattern="$2"; shift ;;
    *) fail "'$1' is not tsan, asan, --files, --fuzz or -R PATTERN" ;;
  esac
  shift
done
[ ${#presets[@]} -gt 0 ] || presets=(tsan asan)
allow_mpirun_as_root

for preset in "${presets[@]}"; do
  say "Configuring build/$preset"
  cmake --log-level=NOTICE --preset "$preset"
  # A test of several ranks is named program.2_ranks. Tests of the whole program are scripts, which are no targets.
  known="$(cmake --build "build/$preset" --target help | sed -n 's/^\([A-Za-z0-9_]*\): phony$/\1/p')"
  tests="$(ctest --test-dir "build/$preset" -N -R "$pattern" | sed -n 's/^ *Test *#[0-9]*: *\([A-Za-z0-9_]*\).*/\1/p' | sort -u)"
  [ -n "$tests" ] || fail "no test has a name like $pattern"
  mapfile -t targets < <(comm -12 <(echo "$tests") <(sort -u <<<"$known"))
  [ "$(wc -w <<<"$tests")" -eq ${#targets[@]} ] || targets+=(lockstep_program write_hdf5_seeds crashing_filter)
  say "Building in build/$preset: ${targets[*]}"
  cmake --build "build/$preset" --parallel "${JOBS:-$(nproc)}" --target "${targets[@]}"
  say "Testing in build/$preset"
  ctest --test-dir "build/$preset" -R "$pattern" --output-on-failure
done
