#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
#
# Installs what Lockstep is built from: distribution packages only, and only those that are missing.
#
#   scripts/install_dependencies.sh [--test] [--check]
#
#   --test    also what the tests need
#   --check   print what is missing and install nothing; exit 1 if something is
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

packages=(
  build-essential cmake ninja-build pkg-config
  libopenmpi-dev openmpi-bin            # MPI
  libhdf5-dev                           # checkpoints and data
  libdnnl-dev ocl-icd-opencl-dev        # oneDNN: matrix products, convolutions (its CMake files ask for OpenCL)
  libeigen3-dev                         # eigenvectors (Shampoo)
  libyaml-cpp-dev libcli11-dev          # configuration, command line
  libspdlog-dev libfmt-dev              # log
  libprotobuf-dev protobuf-compiler     # event files
  nlohmann-json3-dev                    # metrics
  libxxhash-dev zlib1g-dev              # checksums, compression
  libdeflate-dev                        # decompression of HDF5 chunks
  libjpeg-dev libpng-dev                # images (libjpeg-turbo)
)
test_packages=(libgtest-dev libgmock-dev libbenchmark-dev python3 ccache)
optional_test_packages=(
  python3-h5py    # reads a checkpoint from outside; a test skips without it
  shellcheck      # checks the scripts; likewise
  gdb             # debugs one rank; likewise
  tmux            # terminals, for tests of plot and top; likewise
  gfortran        # the Fortran example of predictions; likewise
  iproute2        # network namespaces as hosts; likewise, also where not root
  libclang-rt-dev # libFuzzer, for tests/fuzz/run_libfuzzer.sh, which no test runs
  python3-venv    # for TensorBoard, onnxruntime and others, likewise (scripts/test.sh)
  chromium        # opens the pages of lockstep report; likewise
  zsh fish man-db # complete the command line, and show its manual pages; likewise
  debhelper lintian   # for packaging/debian/build_package.sh, which no test runs
  slurmctld slurmd slurm-client munge  # a Slurm of the tests' own, for the batch scripts; they skip without it
  clang           # compiles the headers and the library, too; likewise
  mpich libmpich-dev  # a second MPI library, as mpirun.mpich; likewise. Open MPI stays the one without an ending
  lmod            # reads the modulefiles; likewise
)

check=no
optional=()
for argument in "$@"; do
  case "$argument" in
    --test) packages+=("${test_packages[@]}"); optional=("${optional_test_packages[@]}") ;;
    --check) check=yes ;;
    -h | --help) print_help; exit 0 ;;
    *) fail "unknown argument '$argument'; see --help" ;;
  esac
done

system="$(uname -s)"
[ ! -r /etc/os-release ] || system="$(. /etc/os-release && echo "${ID:-unknown} ${VERSION_ID:-}")"
case "$system" in
  "debian 12" | "ubuntu 22.04" | "ubuntu 24.04") ;;
  debian* | ubuntu*) echo "note: '$system' is not one of the systems that this was tried on (Debian 12, Ubuntu 22.04 and 24.04)" ;;
  *)
    fail "this script knows Debian 12 and Ubuntu 22.04 and 24.04, not '$system'.
  Install these with your package manager, or load them as modules, then run scripts/build.sh:
  a C++20 compiler (GCC 11 or later), CMake 3.22 or later, Ninja, Open MPI or MPICH, HDF5 (C interface), oneDNN 2.5 or later,
  Eigen 3.4, yaml-cpp, CLI11, spdlog, fmt, protobuf with protoc, nlohmann-json, xxHash, zlib, libdeflate, libjpeg-turbo, libpng; for the tests GoogleTest and Google Benchmark.
  CMake finds them in CMAKE_PREFIX_PATH." ;;
esac

is_installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

missing=()
for package in "${packages[@]}"; do is_installed "$package" || missing+=("$package"); done
if [ "$check" = yes ]; then
  [ ${#missing[@]} -eq 0 ] && { echo "Nothing is missing."; exit 0; }
  printf '%s\n' "${missing[@]}"
  exit 1
fi

wanted=("${missing[@]}")
for package in "${optional[@]}"; do
  # They exclude each other, and either will do.
  if [ "$package" = lmod ] && is_installed environment-modules; then continue; fi
  is_installed "$package" || wanted+=("$package")
done
if [ ${#wanted[@]} -eq 0 ]; then
  echo "All packages are installed."
  exit 0
fi

say "Installing: ${wanted[*]}"
export DEBIAN_FRONTEND=noninteractive
as_root apt-get update -q
available=()
for package in "${wanted[@]}"; do
  if apt-cache show "$package" >/dev/null 2>&1; then
    available+=("$package")
  elif [[ " ${missing[*]-} " == *" $package "* ]]; then
    fail "apt has no package '$package'. On Ubuntu, enable the 'universe' component; otherwise look at apt's sources."
  fi
done
[ ${#available[@]} -eq 0 ] || as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${available[@]}"
