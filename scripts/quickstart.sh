#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
#
# From nothing to a trained network: installs the packages that are missing, builds, trains examples/digits.yaml on two
# ranks and evaluates it on the held-out digits. A second call continues, or finds the run finished.
#
#   scripts/quickstart.sh [--cuda] [options of 'lockstep train', such as --set optimizer.learning_rate=0.01]
#
#   --cuda   builds the GPU backend also where no GPU is visible (scripts/build.sh --help)
#
# Kernels are built for this machine's processor alone; for others, too: scripts/build.sh release -DLOCKSTEP_ISA_LEVELS=all
set -euo pipefail
trap 'printf "\nInterrupted. The same command again goes on where it was.\n"; exit 130' INT
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case "${1-}" in
  -h | --help) print_help; exit 0 ;;
esac
lockstep=build/release/bin/lockstep
run=runs/digits
build_options=()
if [ ! -f build/release/CMakeCache.txt ]; then
  echo "Kernels: built for this machine's processor. For others, too: scripts/build.sh release -DLOCKSTEP_ISA_LEVELS=all"
  build_options=(-DLOCKSTEP_ISA_LEVELS=native)
fi
if [ "${1-}" = --cuda ]; then
  build_options+=(--cuda)
  shift
fi

scripts/install_dependencies.sh
scripts/build.sh release "${build_options[@]}"
allow_mpirun_as_root

say "Training examples/digits.yaml on 2 ranks into $run"
# No binding: two ranks on a machine with one core, or beside other work, run too.
mpirun -n 2 --oversubscribe --bind-to none "$lockstep" train examples/digits.yaml --run-dir "$run" "$@"

say "Evaluating on the held-out digits"
metrics="$("$lockstep" evaluate "$run")"
accuracy="$(sed -n 's/.*"accuracy": *\([0-9.eE+-]*\).*/\1/p' <<<"$metrics" | head -n 1)"

say "Done"
[ -z "$accuracy" ] || echo "Held-out accuracy:  $(awk -v share="$accuracy" 'BEGIN { printf "%.2f %%", 100 * share }')"
echo "All metrics:        $metrics"
echo "Run directory:      $run"
echo "Look at it:         $lockstep inspect $run"
echo "                    $lockstep events $run"
echo "                    tensorboard --logdir $run"
root=
[ "$(id -u)" -ne 0 ] || root="OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
echo "Its digest:         $("$lockstep" inspect "$run" --digest)"
echo "Another number of ranks ends with the same digest:"
echo "  ${root}mpirun -n 3 --oversubscribe --bind-to none $lockstep train examples/digits.yaml --run-dir $run-3"
echo "  $lockstep inspect $run-3 --digest"
