#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs libFuzzer, with AddressSanitizer and UndefinedBehaviorSanitizer, on Lockstep's own parsers of data and
# configurations. Needs GCC and libFuzzer's library (Debian: libclang-rt-dev).
#
#   tests/fuzz/run_libfuzzer.sh [--seconds N] [--keep] [PARSER ...]
#
#   --seconds N   per parser (default: 60)
#   --keep        add what found new paths to the kept inputs, tests/fuzz/corpus/PARSER: at most 40 small files
#   PARSER        csv, example, idx, json, jsonl, keras, npy, onnx, pickle, safetensors, state_dict, tar, tfrecord, yaml, zip (default: all)
#
# What fails is written to build/fuzz/found. The test parsers_replay runs the kept inputs, with any compiler.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"

seconds=60
keep=no
parsers=()
while [ $# -gt 0 ]; do
  case "$1" in
    --seconds) seconds="$2"; shift 2 ;;
    --keep) keep=yes; shift ;;
    -h | --help) print_help; exit 0 ;;
    -*) fail "unknown argument '$1'; see --help" ;;
    *) parsers+=("$1"); shift ;;
  esac
done
[ ${#parsers[@]} -gt 0 ] || parsers=(csv example idx json jsonl keras npy onnx pickle safetensors state_dict tar tfrecord yaml zip)
library="$(find /usr/lib/llvm-*/lib/clang -name "libclang_rt.fuzzer-$(uname -m).a" 2>/dev/null | sort -V | tail -n 1)"
[ -n "$library" ] || fail "there is no libFuzzer: install libclang-rt-dev"

say "Building build/fuzz/bin/parsers_libfuzzer"
cmake -S . -B build/fuzz -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DLOCKSTEP_SANITIZE=address,undefined -DLOCKSTEP_LIBFUZZER="$library" \
  -DLOCKSTEP_WERROR=OFF -DLOCKSTEP_BENCH=OFF >/dev/null
cmake --build build/fuzz --target parsers_libfuzzer

export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
failed=()
for parser in "${parsers[@]}"; do
  kept="tests/fuzz/corpus/$parser" grown="build/fuzz/corpus/$parser"
  mkdir -p "$kept" "$grown" build/fuzz/found
  longest=4096 timeout=10
  if [ "$parser" = keras ]; then longest=16384 timeout=100; fi # HDF5 files are long, and their trial may compute for 60 s
  say "$parser, $seconds s"
  LOCKSTEP_PARSER="$parser" build/fuzz/bin/parsers_libfuzzer -max_total_time="$seconds" -timeout=$timeout -max_len=$longest -rss_limit_mb=2048 \
    -verbosity=0 -print_final_stats=1 -artifact_prefix="build/fuzz/found/$parser-" "$grown" "$kept" || failed+=("$parser")
  if [ "$keep" = yes ]; then
    small="$(mktemp -d)"
    LOCKSTEP_PARSER="$parser" build/fuzz/bin/parsers_libfuzzer -merge=1 -verbosity=0 -max_len=512 "$small" "$kept" "$grown" >/dev/null 2>&1 || true
    # The smallest ones that the kept inputs lack.
    room=$((40 - $(find "$kept" -type f | wc -l)))
    if [ "$room" -gt 0 ]; then
      find "$small" -type f -size -2 -printf '%s %p\n' | sort -n | head -n "$room" | cut -d' ' -f2 | xargs -r cp -n -t "$kept"
    fi
    rm -r "$small"
  fi
done
[ ${#failed[@]} -eq 0 ] || fail "failed: ${failed[*]} (see build/fuzz/found)"
