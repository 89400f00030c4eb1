# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""lockstep doctor on one rank, on two, and on two hosts; each with a fault planted: bound to one core, a full disk, another version."""
import atexit
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
import unittest

import two_hosts
from lockstep_run import MPIRUN, PROGRAM, Job, LockstepTest, main

atexit.register(two_hosts.remove_all)
signal.signal(signal.SIGTERM, lambda *_: exit(1))  # sent by ctest and users: atexit must run
REASON = two_hosts.why_not()
NAMES = ["lockstep", "MPI", "HDF5", "primitives", "instructions", "cores", "memory", "messages", "segments", "disk", "HDF5 file"]


SHARED = pathlib.Path("/dev/shm")
FIRST_NAMESPACE = "pid:[4026531836]"


def sees_all_processes():
    """As the program decides it: no container of others can use what no process here uses."""
    def shows_memory(process):
        try:
            (process / "maps").open("rb").close()
        except PermissionError:
            return str(os.geteuid()) not in re.search(r"^Uid:(.*)", (process / "status").read_text(encoding="utf-8"), re.MULTILINE)[1].split()
        except OSError:
            pass  # it has ended, or is a thread of the kernel
        return True

    return (os.readlink("/proc/self/ns/pid") == FIRST_NAMESPACE and "hidepid" not in pathlib.Path("/proc/self/mounts").read_text(encoding="utf-8")
            and all(shows_memory(process) for process in pathlib.Path("/proc").iterdir() if process.name.isdigit()))


def left_file(test, path):
    """A segment of an hour ago, which no process uses."""
    path.write_bytes(bytes(100000))
    os.utime(path, (time.time() - 3600,) * 2)
    test.addCleanup(path.unlink, missing_ok=True)
    return path


class Doctor(LockstepTest):
    def run_job(self, command, code, variables=None):
        job = Job(command, self.folder, variables=variables)
        self.jobs.append(job)
        result = job.wait()
        self.assertEqual(result.code, code, str(result))
        return json.loads(result.out[result.out.index("{"):])

    def findings(self, run_dir=None, ranks=None, code=0, launcher=()):
        command = [*launcher, *([*MPIRUN, "-n", ranks] if ranks else []), PROGRAM, "doctor", "--json", "--run-dir", run_dir or self.folder]
        found = self.run_job(command, code)
        self.assertEqual(found["ranks"], ranks or 1)
        return found["findings"]

    def named(self, findings, name):
        chosen = [finding for finding in findings if finding["name"] == name]
        self.assertTrue(chosen, f"nothing about {name} in {findings}")
        return chosen

    def other_version(self):
        """The program with another version: one character of the text in its file."""
        version = self.lockstep("--version").out.split()[1].encode()
        other = pathlib.Path(self.folder) / "bin" / "lockstep"
        other.parent.mkdir(exist_ok=True)
        contents = pathlib.Path(PROGRAM).read_bytes()
        changed = contents.replace(version + b"\0", version[:-1] + bytes([version[-1] ^ 1]) + b"\0")
        self.assertNotEqual(changed, contents)
        other.write_bytes(changed)
        shutil.copymode(PROGRAM, other)
        return other


class OneHost(Doctor):
    def test_one_rank(self):
        findings = self.findings()
        for name in NAMES:
            for finding in self.named(findings, name):
                self.assertIn(finding["state"], ("ok", "-", "warning"), finding)
                self.assertEqual(finding["state"] == "warning", finding["advice"] != "", finding)
        if not pathlib.Path("/dev/nvidia0").exists() and not pathlib.Path("/proc/driver/nvidia").exists():
            gpu, = self.named(findings, "GPU")
            self.assertEqual((gpu["state"], gpu["advice"]), ("-", ""), gpu)
            self.assertEqual(gpu["text"], "none on this host, so no NCCL is needed")
        self.assertRegex(self.named(findings, "disk")[0]["text"], r": \d+ MB/s written and flushed, fsync [\d.]+ ms, [\d.]+ GB free")
        self.assertEqual(list(self.folder.glob(".lockstep-doctor*")), [])

    def test_two_ranks(self):
        findings = self.findings(ranks=2)
        text = self.named(findings, "messages")[0]["text"]
        match = re.fullmatch(r"ranks 0 and 1 \(both on .*\): ([\d.]+) us, ([\d.]+) GB/s", text)
        self.assertTrue(match, text)
        self.assertTrue(0.05 < float(match[1]) < 1e6 and 0.001 < float(match[2]) < 1000, text)
        self.assertEqual(len(self.named(findings, "cores")), 2)

    def test_as_text(self):
        result = self.lockstep("doctor", cwd=self.folder)
        self.assertRegex(result.out, r"(?m)^ok       lockstep      \d")
        self.assertRegex(result.out, r"\n1 rank: 0 failures, \d+ warnings?\n$")

    def test_shared_memory_is_removed_where_all_processes_are_seen(self):
        path = left_file(self, SHARED / f"nccl-doctor-test-{os.getpid()}")
        finding = [one for one in self.named(self.findings(), "segments") if str(path) in one["text"]]
        self.assertEqual(len(finding), 1)
        self.assertEqual(path.exists(), not sees_all_processes())
        self.assertEqual(finding[0]["text"].endswith("; left by processes that were killed, removed"), sees_all_processes(), finding)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare"), "not root: no PID namespace can be made")
    def test_shared_memory_stays_where_another_container_may_use_it(self):
        """In a PID namespace of its own, as in a container, which shares /dev/shm with this one."""
        path = left_file(self, SHARED / f"nccl-doctor-test-{os.getpid()}")
        found = self.named(self.findings(launcher=["unshare", "--pid", "--fork", "--mount-proc"]), "segments")
        self.assertEqual([finding["state"] for finding in found], ["warning"], found)
        self.assertIn("another container may use them", found[0]["advice"])
        self.assertTrue(path.exists())

    @unittest.skipIf((os.cpu_count() or 1) < 2, "one core")
    def test_bound_to_one_core(self):
        core = sorted(os.sched_getaffinity(0))[0]
        finding = self.named(self.findings(launcher=["taskset", "-c", core]), "cores")[0]
        self.assertEqual(finding["state"], "warning")
        self.assertIn(f"1 of {os.sysconf('SC_NPROCESSORS_ONLN')} cores ({core}), 1 thread", finding["text"])
        self.assertIn("--bind-to none", finding["advice"])

    @unittest.skipUnless(os.geteuid() == 0, "not root: a small disk cannot be mounted")
    def test_full_disk(self):
        disk = self.folder / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", disk], capture_output=True, text=True, check=False)
        if mounted.returncode != 0:
            self.skipTest(f"no tmpfs here: {mounted.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", disk], check=False)
        findings = self.findings(disk, code=1)
        finding = self.named(findings, "disk")[0]
        self.assertEqual(finding["state"], "failure")
        self.assertIn("No space left on device", finding["text"])
        self.assertIn("is full", finding["advice"])
        self.assertNotIn("HDF5 file", [other["name"] for other in findings])
        self.assertEqual(list(disk.iterdir()), [])

    def test_a_folder_that_is_none(self):
        path = self.folder / "file"
        path.write_text("", encoding="utf-8")
        finding = self.named(self.findings(path / "x", code=1), "disk")[0]
        self.assertEqual(finding["state"], "failure")

    def test_another_version_and_instruction_set_on_one_rank(self):
        arguments = ["doctor", "--json", "--run-dir", self.folder]
        command = [*MPIRUN, "-n", 1, PROGRAM, *arguments, ":", "-n", 1, "-x", "LOCKSTEP_ISA=baseline", self.other_version(), *arguments]
        found = self.run_job(command, 1)
        finding = self.named(found["findings"], "lockstep")[0]
        self.assertEqual(finding["state"], "failure")
        self.assertRegex(finding["text"], r"^\d\S+ \(.*\) on rank 0 \(.*\); \d\S+ \(.*\) on rank 1 \(")
        self.assertIn("All ranks of a run need the same", finding["advice"])
        if self.named(self.findings(), "instructions")[0]["text"] != "baseline":
            self.assertEqual(self.named(found["findings"], "instructions")[0]["state"], "failure")


@unittest.skipIf(REASON is not None, f"no network namespaces here: {REASON}")
class TwoHosts(Doctor):
    def setUp(self):
        super().setUp()
        self.addCleanup(two_hosts.remove_all)
        two_hosts.make()

    def on_hosts(self, first, second, code=0, options=()):
        """One rank on each host, each with its program."""
        arguments = ["doctor", "--json", "--run-dir", self.folder, *options]
        mpirun = [*MPIRUN, "--mca", "plm", "rsh", "--mca", "plm_rsh_agent", two_hosts.ENTER, "--mca", "btl", "tcp,self", "--mca",
                  "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include", "eth0", "--host", "10.77.0.1:1,10.77.0.2:1",
                  "-n", 1, "--host", "10.77.0.1", first, *arguments, ":", "-n", 1, "--host", "10.77.0.2", second, *arguments]
        command = ["ip", "netns", "exec", two_hosts.name(1), "unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', two_hosts.name(1),
                   *mpirun]
        return self.run_job(command, code, {"LOCKSTEP_HOSTS": two_hosts.PREFIX})["findings"]

    def test_two_hosts(self):
        findings = self.on_hosts(PROGRAM, PROGRAM)
        one, two = two_hosts.name(1), two_hosts.name(2)
        self.assertIn(f"ranks 0 and 1 ({one} and {two}): ", self.named(findings, "messages")[0]["text"])
        self.assertIn(f"between {one} and {two}: TCP over eth0", self.named(findings, "transport")[0]["text"])
        self.assertEqual([finding["text"].split(":")[0] for finding in self.named(findings, "memory")][:2], [one, two])

    def test_two_hosts_with_two_versions(self):
        findings = self.on_hosts(PROGRAM, self.other_version(), code=1)
        finding = self.named(findings, "lockstep")[0]
        self.assertEqual(finding["state"], "failure")
        self.assertIn(f"on rank 1 ({two_hosts.name(2)})", finding["text"])

    def test_shared_memory_that_killed_ranks_have_left_on_two_hosts(self):
        """Each host removes what has its name, and leaves what another one has; both have one /dev/shm here."""
        def segments():
            paths = [SHARED / f"vader_segment.{two_hosts.name(number)}.0.5c4b0001.0" for number in (1, 2)]
            for path in paths:
                left_file(self, path)
            return paths

        other = left_file(self, SHARED / f"vader_segment.{two_hosts.PREFIX}-3.0.5c4b0001.0")
        for options in ((), ("--clean",)):
            with self.subTest(options):
                paths = segments()
                found = self.named(self.on_hosts(PROGRAM, PROGRAM, options=options), "segments")
                removes = bool(options) or sees_all_processes()
                self.assertEqual([finding["state"] for finding in found], ["ok" if removes else "warning"] * 2, found)
                for number, (finding, path) in enumerate(zip(found, paths), 1):
                    self.assertRegex(finding["text"], rf"^{two_hosts.name(number)}: 1 segment of shared memory, [\d.]+ MB: {path}(; .*removed)?$")
                    self.assertEqual(finding["text"].endswith("removed"), removes)
                self.assertEqual([path.exists() for path in paths], [not removes] * 2)
        self.assertTrue(other.exists(), "of a host that is not asked")


if __name__ == "__main__":
    main()
