# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""The tables of options, as `lockstep config-reference` prints them."""
import re
import subprocess


def reference_tables(program):
    """{heading: [cells of a row]}: the option's name, its type, its default or "required", its range, and so on."""
    text = subprocess.run([program, "config-reference"], capture_output=True, text=True, check=True).stdout
    found, heading = {}, None
    for line in text.splitlines():
        if line.startswith("## "):
            heading = line[3:]
        elif line.startswith("| `"):
            cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            found.setdefault(heading, []).append([cells[0].strip("`"), *cells[1:]])
    return found
