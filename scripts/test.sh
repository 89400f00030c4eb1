#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
#
# Installs the packages that are missing, builds everything (preset ci) and runs all tests. Ends with CTest's summary.
#
#   scripts/test.sh [--quick] [--cuda] [options of ctest, such as -R params or -L e2e]
#
#   --quick   builds and runs a fast subset, for work: the unit tests, the tests of several ranks on 2 ranks, and one short
#             run of the program. In a built folder that is `ctest --preset ci -L quick`.
#
#   --cuda    compiles the GPU backend with nvcc, too, for the visible GPUs, or for one architecture (90) without a GPU. The
#             emulated GPU is built and tested without it.
#
# JOBS=N limits compilers and tests that run at one time; default: one compiler per core, two tests per core, because
# tests of several ranks wait now and then.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case "${1-}" in
  -h | --help) print_help; exit 0 ;;
esac
label=() target=() cuda=OFF
while [ $# -gt 0 ]; do
  case "$1" in
    --quick) label=(-L quick) target=(--target quick_tests) ;;
    --cuda) cuda=ON ;;
    *) break ;;
  esac
  shift
done
scripts/install_dependencies.sh --test

# What tests compare with is no distribution package: TensorBoard, whose own loader reads our event files, a validator of JSON
# schemas, onnxruntime, scikit-learn, the Python packages of ONNX, safetensors and Keras (whose NumPy backend imports SciPy and
# JAX), and those that write and read data files. They go into a virtual environment below build/, each that pip can get. The tests say that they are skipped otherwise.
[ -x build/python/bin/python3 ] || python3 -m venv build/python || true
for package in tensorboard jsonschema pyyaml onnxruntime onnx safetensors scipy jax keras scikit-learn h5py netCDF4 xarray pandas \
  pillow tokenizers; do
  module="${package/pyyaml/yaml}" module="${module/scikit-learn/sklearn}" module="${module/pillow/PIL}"
  if build/python/bin/python3 -c "import importlib.util, sys; sys.exit(importlib.util.find_spec('$module') is None)" 2>/dev/null; then
    continue
  fi
  say "Installing $package into build/python"
  timeout 120 build/python/bin/pip install -q --disable-pip-version-check --timeout 10 --retries 1 "$package" ||
    echo "note: $package can't be installed here; its tests will be skipped"
done
options=()
if [ "$cuda" = ON ]; then
  architectures="$(visible_gpu_architectures)"
  options=(-DLOCKSTEP_CUDA=ON "-DCMAKE_CUDA_ARCHITECTURES=${architectures:-90-real}")
elif [ ! -f build/ci/CMakeCache.txt ]; then
  options=(-DLOCKSTEP_CUDA=OFF)
fi
scripts/build.sh ci "${target[@]}" "${options[@]}"
if [ ${#target[@]} -eq 0 ]; then cmake --build build/ci --parallel "${JOBS:-$(nproc)}" --target tested_benchmarks; fi
allow_mpirun_as_root

say "Testing"
exec ctest --preset ci --parallel "${JOBS:-$((2 * $(nproc)))}" "${label[@]}" "$@"
