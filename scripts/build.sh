#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
#
# Configures and builds the program: build/release/bin/lockstep.
#
#   scripts/build.sh [PRESET] [--cuda] [--target NAME] [cmake options]      PRESET: release (default), debug, asan, tsan, ci
#
#   --target builds this target only
#   --cuda   builds the GPU backend for all its architectures, also where there is no GPU. Same as -DLOCKSTEP_CUDA=ON.
#
# The preset release builds the program alone, for this machine: without tests and benchmarks, with the GPU backend only
# where a GPU is visible, and then for this GPU's architecture. Kernels are built for every processor;
# -DLOCKSTEP_ISA_LEVELS=native builds them for this machine's alone, in less time. CMake options take precedence, and a build folder that is
# configured keeps its settings. The other presets build the GPU backend where CMake finds the CUDA toolkit.
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
options=() target=()
while [ $# -gt 0 ]; do
  case "$1" in
    --cuda) options+=(-DLOCKSTEP_CUDA=ON) ;;
    --target)
      [ $# -gt 1 ] || fail "--target needs a name"
      target=(--target "$2")
      shift
      ;;
    *) options+=("$1") ;;
  esac
  shift
done

# Adds what a new folder of the preset release is configured with to `options`, and says whether that is with GPUs.
configure_for_this_machine() {
  local given=" ${options[*]-} " architectures
  if [[ "$given" != *" -DLOCKSTEP_CUDA="* ]]; then
    architectures="$(visible_gpu_architectures)"
    if [ -z "$architectures" ]; then
      echo "GPU backend: not built, because nvidia-smi shows no GPU of compute capability 8.0 or later. To build it: scripts/build.sh release --cuda"
      options=(-DLOCKSTEP_CUDA=OFF "${options[@]}")
    else
      echo "GPU backend: built for the visible GPU ($architectures) if CMake finds the CUDA toolkit and cuDNN." \
        "For other GPUs: scripts/build.sh release --cuda"
      options=("-DCMAKE_CUDA_ARCHITECTURES=$architectures" "${options[@]}")
    fi
  fi
  options=(-DLOCKSTEP_TESTS=OFF -DLOCKSTEP_BENCH=OFF -DLOCKSTEP_PCH=ON -DLOCKSTEP_WERROR=OFF "${options[@]}")
}

say "Configuring build/$preset"
if [ "$preset" = release ] && [ ! -f build/release/CMakeCache.txt ]; then configure_for_this_machine; fi
cmake --log-level=NOTICE --preset "$preset" "${options[@]}"
say "Building build/$preset"
cmake --build "build/$preset" --parallel "${JOBS:-$(nproc)}" "${target[@]}"
