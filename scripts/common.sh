# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
#
# What the scripts share; to be sourced. Leaves the shell in the repository's root.
# shellcheck shell=bash
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

say() { printf '\n==> %s\n' "$*"; }
fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# Runs a command as root: directly, or through sudo.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    fail "this needs root: run the script as root, or install sudo ('$*')"
  fi
}

# Open MPI refuses to start as root unless told that this is meant (containers, CI).
allow_mpirun_as_root() {
  [ "$(id -u)" -eq 0 ] || return 0
  echo "Running as root: OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 are set for mpirun."
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
}

# Prints the architectures of the visible GPUs that Lockstep can use, as CMake names them: "90-real".
visible_gpu_architectures() {
  command -v nvidia-smi >/dev/null || return 0
  { nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null || true; } |
    awk -F. '/^ *[0-9]+\.[0-9]+ *$/ && $1 >= 8 { print $1 + 0 $2 + 0 "-real" }' | sort -u | paste -s -d ';'
}

# Prints the calling script's head comment.
print_help() { sed -n '4,/^set /{s/^# \{0,1\}//p}' "scripts/$(basename "$0")"; }
