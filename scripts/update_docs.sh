#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
#
# Writes docs/config.md anew from the tables of the program. A test compares the two.
#
#   scripts/update_docs.sh [path of the program; default: build/release/bin/lockstep]
set -euo pipefail
program="${1:+$(realpath -m -- "$1")}"
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
program="${program:-$PWD/build/release/bin/lockstep}"

[ -x "$program" ] || fail "$program is not there; run scripts/build.sh first"
mkdir -p docs
# By way of a variable: a program that fails leaves the file as it was.
reference="$("$program" config-reference)"
printf '%s\n' "$reference" >docs/config.md
echo "docs/config.md is written."
