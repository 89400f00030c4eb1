#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
#
# Packs what checks a GPU build into one file that is unpacked and runs on a machine with a GPU and little else: the
# program, its GPU tests and benchmarks, the libraries and the Open MPI that they use. What is expected there: a driver,
# CUDA's libraries with cuBLAS, cuDNN 9 and NCCL (of a toolkit or of Python wheels), a C library no older than here, Python 3.
#
#   scripts/pack_gpu_checks.sh BUILD FILE.tar.xz
#
#   BUILD          a build folder with the GPU backend, tests and benchmarks
#   FILE.tar.xz    is made. There: tar xf FILE.tar.xz && gpu_checks/run.sh (--help tells)
#
# The programs contain the same device code several times; in the file it is once. Needs patchelf (installed if missing)
# and 3 GB of memory.
set -euo pipefail
caller="$PWD"
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case "${1:-}" in -h | --help) print_help; exit 0 ;; esac
[ $# -eq 2 ] || fail "needs BUILD and FILE.tar.xz; see --help"
build="$(cd "$caller" && realpath "$1")" file="$(cd "$caller" && realpath -m "$2")"
case "$file" in *.tar.xz) ;; *) fail "$file: the name ends with .tar.xz" ;; esac
[ ! -e "$file" ] || fail "$file is there already"
[ -e "$build/bin/liblockstep_cuda.so" ] || fail "$build has no bin/liblockstep_cuda.so: configure with -DLOCKSTEP_CUDA=ON and build it"
command -v patchelf >/dev/null || as_root apt-get install -q -y --no-install-recommends patchelf
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
folder="$work/gpu_checks"
mkdir -p "$folder"/{bin,bench,lib,source/tests,source/bench}

tests=(cuda_kernels_test cuda_layers_test cuda_driver_test)
benches=(step_bench_gpu kernel_rates tree_rates)
say "Programs"
cp "$build"/bin/{lockstep,liblockstep_cuda.so} "$folder/bin/"
pack() {
  local found
  found="$(find "$build" -type f -name "$1" -perm -u+x | head -n 1)"
  [ -n "$found" ] || fail "$build has no $1: build tests and benchmarks, too"
  cp "$found" "$folder/$2/"
}
for name in "${tests[@]}"; do pack "$name" bin; done
for name in "${benches[@]}"; do pack "$name" bench; done

say "Open MPI"
# In the same places below the folder as below its own prefix: OPAL_PREFIX moves them all.
prefix="$(ompi_info --path prefix --parsable | cut -d: -f3)"
for what in pkglibdir pkgdatadir sysconfdir; do
  from="$(ompi_info --path "$what" --parsable | cut -d: -f3)"
  to="$folder/${from#"$prefix"/}"
  mkdir -p "$(dirname "$to")"
  cp -rL "$from" "$to"
done
for name in mpirun orted; do cp -L "$(command -v "$name")" "$folder/bin/"; done
find "$folder" -name '*.la' -delete

say "Libraries"
# All that is neither the C library's, which must be the machine's own, nor CUDA's, which must fit the driver.
own='^(ld-linux|libc\.|libm\.|libdl\.|librt\.|libpthread\.|libresolv\.|libutil\.|libcublas|libcudnn|libnccl|libcuda|libcudart|libnvrtc|libnvJit)'
find "$folder" -type f \( -perm -u+x -o -name '*.so*' \) -print0 |
  xargs -0 -r ldd 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }' | sort -u |
  while read -r name path; do
    [[ "$name" =~ $own ]] || [ -e "$folder/bin/$name" ] || cp -L "$path" "$folder/lib/$name"
  done
find "$folder" -type f \( -perm -u+x -o -name '*.so*' \) -print0 | while IFS= read -r -d '' file; do
  head -c 4 "$file" | grep -q ELF || continue
  strip --strip-unneeded "$file"
  up="\$ORIGIN/$(realpath --relative-to "$(dirname "$file")" "$folder")"
  patchelf --set-rpath "$up/lib:$up/bin" "$file"
done

say "Scripts"
cp -r examples data "$folder/source/"
cp -r tests/e2e tests/support "$folder/source/tests/"
cp -r bench/gpu bench/*.py "$folder/source/bench/"
cp scripts/run_gpu_checks.py "$folder/"
# shellcheck disable=SC2016  # run.sh expands it
printf '#!/bin/sh\nexec python3 "$(dirname "$0")/run_gpu_checks.py" "$@"\n' > "$folder/run.sh"
chmod +x "$folder/run.sh"
! grep -q '^LOCKSTEP_FAULTS:BOOL=ON' "$build/CMakeCache.txt" || touch "$folder/has_faults"
git rev-parse HEAD > "$folder/commit" 2>/dev/null || true

say "One file"
mkdir -p "$(dirname "$file")"
# The dictionary holds all of it, so that what repeats is stored once. Complete, or not there.
tar -C "$work" --sort=name --owner=0 --group=0 -cf - gpu_checks | xz --lzma2=preset=1,dict=256MiB > "$file.part"
mv "$file.part" "$file"
say "$(du -sh "$folder" | cut -f1) packed into $(du -h "$file" | cut -f1): $file"
