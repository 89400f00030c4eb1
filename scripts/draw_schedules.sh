#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
#
# Draws the examples of docs/schedules.md into docs/images/schedules/ with `lockstep check --plot-schedule`.
#
#   scripts/draw_schedules.sh [path of the program; default: build/release/bin/lockstep]
set -euo pipefail
program="${1:+$(realpath -m -- "$1")}"
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
program="${program:-$PWD/build/release/bin/lockstep}"

[ -x "$program" ] || fail "$program does not exist; run scripts/build.sh first"
mkdir -p docs/images/schedules
sed -n 's/^learning_rate: //p' docs/schedules.md | while read -r example; do
  name="${example#\{}"
  name="${name%%:*}"
  "$program" check examples/digits.yaml --set "optimizer.learning_rate=$example" \
    --plot-schedule "docs/images/schedules/$name.svg" >/dev/null
done
echo "docs/images/schedules written."
