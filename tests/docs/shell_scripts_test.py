# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Every shell script of the repository: shellcheck finds nothing. Exit code 77 ("skipped") without shellcheck.

    shell_scripts_test.py SOURCE
"""
import pathlib
import re
import shutil
import subprocess
import sys

source = pathlib.Path(sys.argv[1])
if shutil.which("shellcheck") is None:
    print("skipped: shellcheck is not installed")
    sys.exit(77)
scripts = [path for folder in (".ci", "bench", "examples", "packaging", "scripts", "slurm", "tests") for path in (source / folder).rglob("*")
           if path.is_file() and path.suffix not in (".py", ".cpp", ".h", ".gz") and
           re.match(rb"#!.*\b(ba)?sh\b|# SPDX[^\n]*\n# SPDX[^\n]*\n# shellcheck shell", path.read_bytes()[:300])]
assert len(scripts) > 10, scripts
sys.exit(subprocess.run(["shellcheck", "-x", "--source-path", source, *scripts], check=False).returncode)
