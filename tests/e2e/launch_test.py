# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Starting the program the way a person does: without a launcher, without --run-dir, from anywhere."""
import fcntl
import json
import os
import pathlib
import pty
import re
import shutil
import struct
import subprocess
import termios
import time
import unittest

from lockstep_run import DIGITS, MPIRUN, PROGRAM, Job, LockstepTest, checkpoints, main, records, wait_until


class LaunchTest(LockstepTest):
    def test_without_a_launcher_it_is_one_rank(self):
        alone = self.train("alone", ranks=None, steps=10, threads=None)
        self.assertRegex(alone.err, r"1 rank, 1 of them on \S+, each with \d+ threads?")
        self.train("mpirun", ranks=1, steps=10, threads=None)
        self.assert_same_run("alone", "mpirun")

    def test_the_default_run_directory(self):
        for ranks, folder in ((None, "alone"), (2, "together")):
            place = self.folder / folder
            place.mkdir()
            arguments = ["train", DIGITS, "--steps", 5, "--threads", 1]
            self.lockstep(*arguments, ranks=ranks, cwd=place)
            run = place / "runs" / "digits"
            present = {re.sub(r"(tfevents)\..*", r"\1", path.name) for path in run.iterdir()}
            self.assertEqual(present, {"config.yaml", "configs", "checkpoint", "checkpoints", "metrics.jsonl", "ranks.json", "lockstep.log",
                                       "events.out.tfevents", "eval", ".lock", "status.json"})
            self.assertEqual([path.name for path in checkpoints(run)], ["step-00000005.h5"])
            self.assertEqual([path.name for path in place.iterdir()], ["runs"])
            self.assertEqual(len(records(run, "eval")), 1)
            self.assertIn("evaluation at step 5", (run / "lockstep.log").read_text(encoding="utf-8"))
        self.assertEqual(self.digest("alone/runs/digits"), self.digest("together/runs/digits"))

    def evaluate_through(self, *launcher, variables=None):
        """`lockstep evaluate` through a launcher of the test's own; its Result."""
        job = Job([*launcher, PROGRAM, "evaluate", self.folder / "run"], self.folder, variables=variables)
        self.jobs.append(job)
        result = job.wait()
        self.assertEqual(result.code, 0, str(result))
        return result

    @unittest.skipIf(os.cpu_count() < 2, "one core: there is nothing to bind to")
    def test_ranks_on_one_core_are_named(self):
        self.train("run", steps=2)
        core = min(os.sched_getaffinity(0))
        result = self.evaluate_through(*MPIRUN, "-n", 2, "taskset", "-c", core)
        self.assertRegex(result.err, rf"warning: ranks 0-1 on host \S+ share 1 core \({core}\)")
        self.assertEqual(result.err.count("give each rank its own cores"), 1, "once, not by every rank")
        if len(os.sched_getaffinity(0)) == os.cpu_count():
            self.assertNotIn("give each rank its own cores", self.evaluate_through(*MPIRUN, "-n", 3).err)

    def test_two_open_mpis_are_named(self):
        """A second Open MPI: copies of mpirun and its libraries, while the ranks find the first one's."""
        mpirun = pathlib.Path(shutil.which(MPIRUN[0])).resolve()
        listing = subprocess.run(["ldd", mpirun], capture_output=True, text=True, check=True).stdout
        libraries = re.findall(r"(libopen-(?:pal|rte)\.so\S*) => (\S+)", listing)
        if len(libraries) != 2:
            self.skipTest("this mpirun is not Open MPI 4's")
        other = self.folder / "other"
        other.mkdir()
        for name, path in libraries:
            shutil.copy(path, other / name)
        self.train("run", steps=2)
        # The path to the copies is mpirun's alone.
        result = self.evaluate_through(*MPIRUN, "-n", 2, "env", "--unset=LD_LIBRARY_PATH", variables={"LD_LIBRARY_PATH": str(other)})
        self.assertRegex(result.err, rf"warning: two Open MPIs: mpirun uses {other}/libopen-pal")
        self.assertEqual(result.err.count("two Open MPIs"), 1)
        self.assertNotIn("two Open MPIs", self.evaluate_through(*MPIRUN, "-n", 2).err)

    def test_moved_run_directory_can_be_run_again(self):
        self.train("first", steps=5)
        moved = self.folder / "elsewhere" / "moved"
        moved.parent.mkdir()
        shutil.move(self.folder / "first", moved)
        digest = self.digest("elsewhere/moved")
        metrics = json.loads(self.lockstep("evaluate", moved, cwd="/").out)
        self.assertEqual(metrics["samples"], 297)
        self.lockstep("train", moved / "config.yaml", "--run-dir", self.folder / "again", ranks=2, cwd="/")
        self.assertEqual(self.header(self.folder / "again")["global_step"], 5)
        self.assertEqual(self.digest("again"), digest)

    def test_the_event_files_and_the_metrics_say_the_same(self):
        self.train("run", ranks=2, steps=6)
        lines = self.lockstep("events", self.folder / "run", "--tag", "loss").out.splitlines()
        events = [json.loads(line) for line in lines]
        for split, steps in (("train", list(range(1, 7))), ("eval", [6])):
            found = [event for event in events if event["file"].startswith("eval/") == (split == "eval")]
            self.assertEqual([event["step"] for event in found], steps)
            for event, record in zip(found, records(self.folder / "run", split)):
                self.assertAlmostEqual(event["value"], record["loss"], delta=1e-6 * record["loss"])  # float32 there

    def test_a_rank_that_never_starts_ends_the_others(self):
        """MPI_Init_thread waits for every rank; the second one is no Lockstep."""
        arguments = self.train_arguments("run", steps=3, sets=["comm.start_timeout_seconds=1.5"])
        job = Job([*MPIRUN, "-n", 1, PROGRAM, *arguments, ":", "-n", 1, "sleep", "100"], self.folder)
        self.jobs.append(job)
        result = job.wait(limit=30)
        self.assertEqual(result.code, 1, str(result))
        self.assertRegex(result.err, r"error: rank 0 on host \S+ has waited 2 s in 'MPI_Init_thread' while the run starts: "
                                     r"another rank is stopped, or was not started; the run ends here\n +Look at the hosts")

    def test_a_long_start_names_its_limit_before_it_ends(self):
        """Whatever comm.timeout_seconds says, which is the limit of a call of a run that has started."""
        arguments = self.train_arguments("run", steps=3, sets=["comm.start_timeout_seconds=12", "comm.timeout_seconds=5"])
        job = Job([*MPIRUN, "-n", 1, PROGRAM, *arguments, ":", "-n", 1, "sleep", "100"], self.folder)
        self.jobs.append(job)
        result = job.wait(limit=40)
        self.assertEqual(result.code, 1, str(result))
        self.assertRegex(result.err, r"warning: rank 0 on host \S+ has waited 10 s in 'MPI_Init_thread' while the run starts: another rank is slow, "
                                     r"is stopped, or was not started; the run ends after 12 s \(comm\.start_timeout_seconds\)\n(.|\n)*"
                                     r"error: rank 0 on host \S+ has waited 12 s")

    def segments(self):
        """Open MPI's shared memory in the test's folder; its age is that of an hour ago."""
        found = sorted(self.folder.glob("vader_segment.*")) + sorted(self.folder.glob("sm_segment.*"))
        for path in found:
            os.utime(path, (time.time() - 3600,) * 2)
        return found

    def test_shared_memory_of_killed_ranks_is_found_and_removed(self):
        job = self.start(*self.train_arguments("killed", steps=1000000), ranks=2)
        wait_until(lambda: records(self.folder / "killed") or not job.running(), 60, "a step")
        job.kill()
        left = self.segments()
        if not left:
            self.skipTest("this MPI leaves no files")
        said = r"killed processes have left \d+ segments of shared memory, [\d.]+ MB: .*lockstep doctor --clean"  # others may have left some
        result = self.train("next", ranks=2, steps=2)
        self.assertRegex(result.err, said)
        self.assertEqual(len(re.findall(said, result.err)), 1, "once, not by every rank")
        doctor = lambda *options: self.lockstep("doctor", *options, cwd=self.folder).out
        found = [one for one in json.loads(doctor("--json"))["findings"] if one["name"] == "segments"]
        self.assertEqual([one["state"] for one in found], ["warning"], found)
        self.assertIn("doctor --clean", found[0]["advice"])
        self.assertEqual(self.segments(), left, "named only")

        job = self.start(*self.train_arguments("living", steps=1000000), ranks=2)
        wait_until(lambda: records(self.folder / "living") or not job.running(), 60, "a step")
        living = [path for path in self.segments() if path not in left]
        self.assertEqual(len(living), 2)
        self.assertRegex(doctor("--clean"), r"ok +segments .*\d+ segments of shared memory.*, removed")
        self.assertEqual(self.segments(), living, "those of processes that live stay")
        self.assertTrue(job.running())
        self.assertRegex(doctor(), "ok +segments +killed processes have left no shared memory")

    def test_the_error_message_precedes_the_launchers_lines(self):
        """mpirun's own lines cannot be avoided; they come after ours."""
        for arguments in (["trian"], self.train_arguments("run", steps=3, sets=["shards=2"])):
            for _ in range(3):
                result = self.start(*arguments, ranks=3).wait()
                self.assertEqual(result.code, 2, str(result))
                self.assert_one_error(result, 2, "error: ")
                self.assertLess(result.err.find("error: "), result.err.find("non-zero"), str(result))

    def on_a_terminal(self, *command):
        """What a command shows on a terminal of 100 columns."""
        terminal, end = pty.openpty()
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        shown = b""
        with subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=end, stderr=end,
                              env=dict(os.environ, TERM="xterm", TMPDIR=str(self.folder)), start_new_session=True) as process:
            os.close(end)
            try:
                while chunk := os.read(terminal, 4096):
                    shown += chunk
            except OSError:  # EIO: nobody has the other end any more
                pass
            process.wait(timeout=60)
        os.close(terminal)
        self.assertEqual(process.returncode, 0, shown)
        return shown.decode()

    def test_progress_bar_also_on_the_launchers_terminal(self):
        for name, launcher in (("alone", []), ("mpirun", [*MPIRUN, "-n", 2]), ("tagged", [*MPIRUN, "--tag-output", "-n", 2])):
            shown = self.on_a_terminal(*launcher, PROGRAM, *self.train_arguments(name, steps=60))
            bars = re.findall(r"\r\033\[K(\[[^\r]*loss[^\r]*)\r", shown)
            if name == "tagged":
                self.assertEqual(bars, [])
                continue
            self.assertGreater(len(bars), 0, shown)
            self.assertTrue(all(len(bar) < 100 for bar in bars), bars)
            self.assertNotIn("\033", (self.folder / name / "lockstep.log").read_text(encoding="utf-8"))

    def test_check_and_info_need_no_run(self):
        table = self.lockstep("check", DIGITS, cwd=self.folder).out
        for layer in ("conv1", "bn1", "conv2", "bn2", "logits"):
            self.assertIn(layer, table)
        self.assertIn("MPI", self.lockstep("info", cwd=self.folder).out)
        self.assertEqual(list(self.folder.glob("runs")), [])


if __name__ == "__main__":
    main()
