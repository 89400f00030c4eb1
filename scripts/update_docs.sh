#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
#
# Writes docs/config.md, docs/config.schema.json and src/api/options.h from the program's tables of options. The tests
# driver_docs_config_test, driver_schema_test and driver_options_header_test compare them.
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
header="$("$program" config-reference --header)"
printf '%s\n' "$header" >src/api/options.h
schema="$("$program" schema)"
printf '%s\n' "$schema" >docs/config.schema.json
echo "docs/config.md, docs/config.schema.json and src/api/options.h written."
