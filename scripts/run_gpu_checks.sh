#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs what scripts/pack_gpu_checks.sh has packed, on a machine with a GPU: tests, then benchmarks, most telling first.
# Each part has a time limit and leaves a log; a part that fails does not stop the others.
#
#   run.sh [--seconds N] [--only PART[,PART...]] [--output FOLDER]
#
#   --seconds  for all parts together; what no longer fits is named and left out. Default: no limit
#   --only     of: info, kernels, layers, driver, run, tables, memcheck, racecheck, kernel_rates, tree_rates, compare, compiled.
#              Default: all
#   --output   for logs and JSON files; default: gpu_checks
#
# CUDA's libraries are looked for in LD_LIBRARY_PATH, the system, /usr/local/cuda, and python3's nvidia-* wheels.
# Exit code: 0 if every part that ran has passed, else 1.
set -uo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
seconds='' only='' output=gpu_checks
while [ $# -gt 0 ]; do
  case "$1" in
    --seconds) seconds="$2"; shift ;;
    --only) only=",$2,"; shift ;;
    --output) output="$2"; shift ;;
    -h | --help) sed -n '4,/^set /{s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) echo "error: unknown argument '$1'; see --help" >&2; exit 2 ;;
  esac
  shift
done
[ -d "$here/source" ] || { echo "error: $here is no folder that pack_gpu_checks.sh made" >&2; exit 2; }
mkdir -p "$output" && output="$(cd "$output" && pwd)" || exit 2

wheels="$(python3 -c 'import glob, sys; print(":".join(p for d in sys.path for p in glob.glob(d + "/nvidia/*/lib")))' 2>/dev/null)"
export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}/usr/local/cuda/lib64${wheels:+:$wheels}"
export OPAL_PREFIX="$here" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_mpi_yield_when_idle=1 LOCKSTEP_REQUIRE_GPU=1
export LOCKSTEP_PROGRAM="$here/bin/lockstep" LOCKSTEP_MPIRUN="$here/bin/mpirun --oversubscribe --bind-to none"
export LOCKSTEP_SOURCE="$here/source" PYTHONPATH="$here/source/tests/support" PYTHONDONTWRITEBYTECODE=1
PATH="$here/bin:$PATH:/usr/local/cuda/bin"

begin=$SECONDS results=() failed=0
# part NAME LIMIT COMMAND...
part() {
  local name="$1" limit="$2" code=0 from=$SECONDS left
  shift 2
  [ -z "$only" ] || [[ "$only" == *",$name,"* ]] || return 0
  if [ -n "$seconds" ]; then
    left=$((seconds - (SECONDS - begin)))
    if [ "$left" -lt 20 ]; then
      results+=("$(printf '%-14s left out, no time' "$name")")
      return 0
    fi
    [ "$limit" -le "$left" ] || limit=$left
  fi
  echo "==> $name: $*"
  (cd "$output" && timeout --kill-after 10 "$limit" "$@") >"$output/$name.log" 2>&1 || code=$?
  local word=passed
  [ "$code" -eq 0 ] || { word="failed ($code)"; failed=1; }
  [ "$code" -ne 124 ] || word="failed: cut off after $limit s"
  results+=("$(printf '%-14s %s, %s s: %s' "$name" "$word" $((SECONDS - from)) "$(summary "$output/$name.log")")")
  echo "${results[-1]}"
  [ "$code" -eq 0 ] || grep -a -E "FAILED|Failure|^error|FAIL:|ERROR:|Error" "$output/$name.log" | head -n 12
}
# The line of a log that says most.
summary() {
  grep -a -E '^\[  (PASSED|FAILED)  \] [0-9]+ test|^(OK|FAILED \()|^Ran [0-9]+|ERROR SUMMARY|RACECHECK SUMMARY|^error:|there is no GPU' "$1" | tail -n 3 | tr '\n' ' '
}
# shellcheck disable=SC2317  # called below, through bash -c
info() {
  nvidia-smi && "$here/bin/lockstep" info
}
# shellcheck disable=SC2317
sanitize() { compute-sanitizer --tool "$1" --error-exitcode 9 "${@:2}"; }
export here
export -f info sanitize

small='--gtest_filter=-*Random*:*Large*'
part info 60 bash -c info
part kernels 300 "$here/bin/cuda_kernels_test"
part layers 300 "$here/bin/cuda_layers_test"
part driver 120 "$here/bin/cuda_driver_test"
part run 600 python3 -B "$here/source/tests/e2e/gpu_test.py" -v
part tables 300 python3 -B "$here/source/tests/e2e/gpu_sparse_test.py" -v
part large_numbers 120 python3 -B "$here/source/tests/e2e/large_numbers_gpu_test.py" -v
part kernel_rates 120 "$here/bench/kernel_rates" --json "$output/kernel_rates.json"
part tree_rates 60 "$here/bench/tree_rates" --json "$output/tree_rates.json"
part compare 600 python3 "$here/source/bench/gpu/compare.py" --build "$here" --ways lockstep,eager --budget 580 --json "$output/compare.json"
part memcheck 600 bash -c "sanitize memcheck '$here/bin/cuda_kernels_test' '$small'"
part racecheck 600 bash -c "sanitize racecheck '$here/bin/cuda_kernels_test' '$small'"
part compiled 600 python3 "$here/source/bench/gpu/compare.py" --build "$here" --ways lockstep,compiled --rounds 1 --budget 580 --json "$output/compiled.json"

echo
printf '%s\n' "${results[@]}" | tee "$output/summary.txt"
exit "$failed"
