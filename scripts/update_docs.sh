#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
#
# Writes docs/config.md from the program's tables of options. The test reference_config_test compares them. (The build itself makes the
# schema of configurations and the header of options, in its folder `generated`.)
#
#   scripts/update_docs.sh [path of the program; default: build/release/bin/lockstep]
set -euo pipefail
program="${1:+$(realpath -m -- "$1")}"
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
program="${program:-$PWD/build/release/bin/lockstep}"

[ -x "$program" ] || fail "$program does not exist; run scripts/build.sh first"
mkdir -p docs
# The output goes to a variable first: if the program fails, the file stays as it was.
reference="$("$program" config-reference)"
printf '%s\n' "$reference" >docs/config.md
echo "docs/config.md written."
