# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""A run on two hosts has the same bits as on one host. If a host is lost, the run ends in time, names the host and leaves no
process; it resumes elsewhere from its last checkpoint."""
import atexit
import os
import re
import signal
import time
import unittest

import two_hosts
from lockstep_run import MPIRUN, PROGRAM, Job, LockstepTest, alive, checkpoints, main, wait_until

STEPS = 40000  # far more than any of these runs completes
EVERY = 100
LIMIT = 4      # comm.timeout_seconds
KEEPALIVE = {"OMPI_MCA_oob_tcp_keepalive_time": "18", "OMPI_MCA_oob_tcp_keepalive_intvl": "1",
             "OMPI_MCA_oob_tcp_keepalive_probes": "2"}

atexit.register(two_hosts.remove_all)
signal.signal(signal.SIGTERM, lambda *_: exit(1))  # sent by ctest and users: atexit must run
REASON = two_hosts.why_not()


@unittest.skipIf(REASON is not None, f"no network namespaces here: {REASON}")
class HostsTest(LockstepTest):
    def setUp(self):
        super().setUp()
        self.addCleanup(two_hosts.remove_all)
        two_hosts.make()

    def start_on_hosts(self, run_dir, ranks_per_host=2, transports="tcp,self", variables=None, **options):
        """Starts lockstep train with an mpirun on the first host."""
        hosts = ",".join(f"10.77.0.{number}:{ranks_per_host}" for number in (1, 2))
        mpirun = [*MPIRUN, "--host", hosts, "-n", 2 * ranks_per_host, "--mca", "plm", "rsh", "--mca", "plm_rsh_agent",
                  two_hosts.ENTER, "--mca", "btl", transports, "--mca", "btl_tcp_if_include", "eth0", "--mca",
                  "oob_tcp_if_include", "eth0"]
        arguments = ["ip", "netns", "exec", two_hosts.name(1), "unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"',
                     two_hosts.name(1), *mpirun, PROGRAM, *self.train_arguments(run_dir, **options)]
        job = Job(arguments, self.folder, variables={"LOCKSTEP_HOSTS": two_hosts.PREFIX, **(variables or {})})
        self.jobs.append(job)
        return job

    def start_long_run(self, **more):
        """Starts a run and waits for two checkpoints. Returns the job and {rank: pid} of the second host."""
        job = self.start_on_hosts("run", steps=STEPS, sets=[f"comm.timeout_seconds={LIMIT}",
                                                            f"checkpoint.every_steps={EVERY}"], **more)
        wait_until(lambda: not job.running() or len(checkpoints(self.folder / "run")) >= 2, 60, "two checkpoints")
        self.assertEqual(sorted(two_hosts.ranks(1)), [0, 1])
        second = two_hosts.ranks(2)
        self.assertEqual(sorted(second), [2, 3])
        return job, second

    def assert_nothing_is_left(self, limit):
        for number in (1, 2):
            wait_until(lambda n=number: not any(map(alive, two_hosts.processes(n))), limit,
                       f"the processes on host {number} to end")

    def assert_resumes_on_one_host(self):
        reached = self.header(self.folder / "run")["global_step"]
        self.assertGreaterEqual(reached, EVERY)
        result = self.train("run", ranks=2, steps=reached + 10)
        self.assertIn(f"continuing at step {reached}", result.err)
        self.train("whole", ranks=1, steps=reached + 10)
        self.assert_same_run("whole", "run")

    def test_same_bits_as_one_host_and_transports(self):
        one, two = two_hosts.name(1), two_hosts.name(2)
        between = f"messages between {one} and {two}: TCP over eth0 (10.77.0.1 - 10.77.0.2)"
        for run, transports, within in (("tcp", "tcp,self", "TCP over eth0"), ("both", "tcp,vader,self", "shared memory")):
            result = self.start_on_hosts(run, steps=30, transports=transports).wait()
            self.assertEqual(result.code, 0, str(result))
            self.assertEqual(re.findall(r"^messages .*$", result.err, re.MULTILINE),
                             [f"messages within {one}, {two}: {within}", between], "one line per kind of transport")
            self.assertIn("mpirun itself only after 480 s or more: docs/hosts.md", result.err)
        self.train("one", ranks=1, steps=30)
        self.assert_same_run("one", "tcp")
        self.assert_same_run("one", "both")

    def test_each_host_has_copies_of_the_data(self):
        node = self.folder / "node"
        node.mkdir()
        result = self.start_on_hosts("copies", steps=30, sets=[f"data.stage_to={node}"]).wait()
        self.assertEqual(result.code, 0, str(result))
        staged = re.findall(r"^staged data files on (\S+) in \S+: 1 files, ", result.err, re.MULTILINE)
        self.assertEqual(sorted(staged), [two_hosts.name(1), two_hosts.name(2)])
        self.assertEqual(list(node.iterdir()), [])
        self.train("files", ranks=1, steps=30)
        self.assert_same_run("files", "copies")

    def test_killed_rank_on_the_second_host(self):
        job, second = self.start_long_run()
        begin = time.monotonic()
        os.kill(second[3], signal.SIGKILL)
        result = job.wait(limit=60)
        self.assertLess(time.monotonic() - begin, 30, str(result))
        self.assertNotEqual(result.code, 0, str(result))
        self.assertRegex(re.sub(r"\s+", " ", result.out + result.err), rf"rank 3 .*on node (10\.77\.0\.2|{two_hosts.name(2)})")
        self.assert_nothing_is_left(10)
        self.assert_resumes_on_one_host()

    def test_lost_link(self):
        """With a launcher that monitors its hosts (docs/hosts.md) no process is left after the limit."""
        job, _ = self.start_long_run(variables=KEEPALIVE)
        two_hosts.set_link(2, "down")
        begin = time.monotonic()
        result = job.wait(limit=60)
        self.assertLess(time.monotonic() - begin, 18 + 2 + 10, str(result))
        self.assertNotEqual(result.code, 0, str(result))
        self.assertRegex(result.err, rf"rank [01] of 4 on host {two_hosts.name(1)} has waited \d+ s in '.+' .*"
                                     r"\(phase 'step \d+'\); the run ends here")
        self.assertRegex(result.err, rf"ranks 2-3: no answer from host {two_hosts.name(2)}: dead, stopped, disconnected")
        self.assertNotIn("mpirun itself only after", result.err)
        self.assert_nothing_is_left(20)
        self.assert_resumes_on_one_host()

    def test_disconnected_ranks_end_themselves(self):
        """Even if the launcher notices nothing, no rank remains on either host."""
        job, _ = self.start_long_run()
        two_hosts.set_link(2, "down")
        for number in (1, 2):
            wait_until(lambda n=number: not two_hosts.ranks(n), LIMIT + 10 + 6, f"the ranks on host {number} to end")
        job.err.seek(0)
        self.assertIn(f"no answer from host {two_hosts.name(2)}", job.err.read().decode())
        job.kill()
        two_hosts.remove_all()
        self.assert_resumes_on_one_host()


if __name__ == "__main__":
    main()
