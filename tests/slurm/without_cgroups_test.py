# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""The Slurm of slurm_cluster.py starts where no cgroup file system is mounted, as in many containers."""
import pathlib
import shutil
import subprocess
import sys

import slurm_cluster

SKIPPED = 77
IN_NAMESPACE = "umount --lazy --recursive /sys/fs/cgroup 2>/dev/null || umount --lazy /sys/fs/cgroup; exec"

reason = slurm_cluster.why_not()
if reason is None and (shutil.which("unshare") is None or
                       subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode != 0):
    reason = "no mount namespaces here"
if reason is not None:
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)
test = pathlib.Path(__file__).with_name("slurm_test.py")
sys.exit(subprocess.run(["unshare", "--mount", "sh", "-c", f'{IN_NAMESPACE} "$@"', "sh", sys.executable, "-B", str(test),
                         "SlurmTest.test_train_with_either_launcher"], check=False).returncode)
