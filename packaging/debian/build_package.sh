#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
#
# Makes the Debian source package of the committed source (HEAD), and the binary packages from it, in an empty folder.
#
#   packaging/debian/build_package.sh FOLDER [--source-only]
set -euo pipefail
case "${1-}" in
  "" | -*) sed -n '5,7s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
mkdir -p "$1"
folder="$(cd "$1" && pwd)"
[ -z "$(ls -A "$folder")" ] || { echo "error: $folder is not empty" >&2; exit 2; }

version="$(sed -n '1s/.*(\(.*\)-.*/\1/p' "$root/packaging/debian/changelog")"
source="$folder/lockstep-$version"
git -C "$root" archive --prefix="lockstep-$version/" HEAD | tar -x -C "$folder"
# The same bytes each time: names in order, the commit's time.
tar -C "$folder" --sort=name --owner=0 --group=0 --numeric-owner --mtime="$(git -C "$root" log -1 --format=%cI)" -c "lockstep-$version" |
  gzip -n >"$folder/lockstep_$version.orig.tar.gz"
mkdir "$source/debian"
for item in changelog control copyright liblockstep-dev.install lockstep.install not-installed rules source; do
  cp -R "$source/packaging/debian/$item" "$source/debian/"
done
cd "$source"
if [ "${2-}" = --source-only ]; then
  dpkg-buildpackage -S -us -uc -d
else
  dpkg-buildpackage -us -uc
fi
echo "Packages are in $folder."
