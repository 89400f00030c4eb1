# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Each fault that a test build can inject (LOCKSTEP_FAULT=step:rank:kind, src/core/fault.h): how the run ends, within
which time, what it reports, that no damaged file has a final name, and that the resumed run ends with the bits of an
undisturbed run."""
import json
import platform
import re
import shutil
import unittest

try:
    from tensorboard.backend.event_processing import event_accumulator
except ImportError:
    event_accumulator = None

from lockstep_run import SOURCE, LockstepTest, checkpoints, main, records

CONFIG = SOURCE / "tests" / "faults" / "small.yaml"
STEPS, EVERY, AT = 230, 50, 201  # steps of a run, steps between two checkpoints, step of the fault
HANG = 3       # comm.timeout_seconds
IN_TIME = 40   # seconds for the start, some steps, and the end after a fault (the limit and 10 s)
# Every checkpoint is on the disk before the next step, so that a slow disk changes nothing.
SETS = [f"checkpoint.every_steps={EVERY}", "checkpoint.background=false", "comm.check_every_steps=0",
        f"comm.timeout_seconds={HANG}"]
BACKGROUND = ["checkpoint.background=true"]
HOST = re.escape(platform.node())


def waited(phase):
    return rf"rank \d of \d on host {HOST} has waited \d+ s in '[^']+' (for rank \d )?\(phase '{phase}'\)"


class InjectedFaultsTest(LockstepTest):
    reason = ""  # of a run that hangs

    def disturbed(self, kind, rank, ranks, code, says, at=AT, sets=()):
        """A run with a fault. It ends with `code` and in time, reports all patterns, and leaves only intact files."""
        options = {"config": CONFIG, "steps": STEPS, "sets": [*SETS, *sets]}
        result = self.start(*self.train_arguments("run", **options), ranks=ranks,
                            variables={"LOCKSTEP_FAULT": f"{at}:{rank}:{kind}"}).wait(limit=90)
        self.assertEqual(result.code, code, str(result))
        self.assertLess(result.seconds, IN_TIME, str(result))
        for pattern in says:
            self.assertRegex(result.err, pattern, str(result))
        self.assertNotRegex(result.err, r"Signal:|terminate called", str(result))
        for path in checkpoints(self.folder / "run"):
            self.lockstep("inspect", path, "--digest")  # reads and verifies every byte
        return result

    def ends_as_undisturbed(self, before=None):
        """Resumes on another number of ranks from a checkpoint of a step before `before`; 0: without a checkpoint."""
        resumed = self.train("run", config=CONFIG, ranks=3, steps=STEPS, sets=SETS)
        if before is not None:
            at = re.search(r"continuing at step (\d+)", resumed.err)
            self.assertEqual(at is not None, before > 0, str(resumed))
            self.assertLess(int(at[1]) if at else -1, before, str(resumed))
        names = [path.name for path in (self.folder / "run" / "checkpoints").iterdir()]
        self.assertTrue(all(re.fullmatch(r"step-\d{8}\.h5", name) for name in names), names)
        self.train_once("whole", config=CONFIG, ranks=None, steps=STEPS, sets=SETS)
        self.assert_same_run("whole", "run")
        self.records_are_there_once()

    def records_are_there_once(self):
        """metrics.jsonl and the event files hold every step exactly once, also for TensorBoard's own loader."""
        run, steps = self.folder / "run", list(range(1, STEPS + 1))
        self.assertEqual([record["step"] for record in records(run)], steps)
        values = [json.loads(line) for line in self.lockstep("events", run, "--tag", "loss").out.splitlines()]
        self.assertEqual(sorted(value["step"] for value in values if not value["file"].startswith("eval/")), steps)
        if event_accumulator is not None:
            loaded = event_accumulator.EventAccumulator(str(run))
            loaded.Reload()
            self.assertEqual([event.step for event in loaded.Scalars("loss")], steps)

    def ends_the_run(self, kind, code, says, rank=1, ranks=2):
        result = self.disturbed(kind, rank, ranks, code, says)
        shutil.copytree(self.folder / "run", self.folder / "stopped")
        if self.reason:
            self.assert_last_words(self.folder / "stopped", result.err)
        self.assertLessEqual(len(records(self.folder / "run")), AT, "steps after the fault")
        self.ends_as_undisturbed(before=AT)
        return result

    def hangs(self, kind, says, reason, phase=f"step {AT}", rank=1):
        """`reason`: what the run directory says afterwards, whichever rank wrote it."""
        self.reason = reason
        result = self.ends_the_run(kind, 1, [waited(phase), *says], rank=rank)
        self.assertEqual(len(re.findall("; the run ends here", result.err)), 1, str(result))

    def assert_last_words(self, run, err):
        """The log, the status and `lockstep status` of a run that hung name the rank, as standard error does."""
        reason = f"the run hangs: {self.reason}"
        self.assertRegex(err, rf"(?m)^error: {reason}")
        log = (run / "lockstep.log").read_text()
        self.assertEqual(len(re.findall(rf"(?m)^\S+ error error: {reason}.*\n  rank \d of \d on host .*; the run ends here\.$", log)), 1, log)
        self.assertIn("The last calls of rank", log)
        status = json.loads((run / "status.json").read_text())
        self.assertEqual((status["state"], status["exit_code"]), ("failed", 1), status)
        self.assertRegex(status["reason"], rf"^{reason}")
        self.assertRegex(self.lockstep("status", run).out, rf"state +failed: {reason}")

    def test_exit(self):
        self.ends_the_run("exit", 9, [r"\[\[\d+,1\],1\]\s+Exit code:\s+9"])

    def test_kill(self):
        self.ends_the_run("kill", 137, [rf"process rank 1 .*on node {HOST} exited on signal 9"])

    def test_kill_of_the_chief(self):
        self.ends_the_run("kill", 137, [rf"process rank 0 .*on node {HOST} exited on signal 9"], rank=0)

    def test_exception(self):
        self.ends_the_run("exception", 3, [r"error: rank 1: a fault on purpose"])
        run = self.folder / "stopped"
        self.assertRegex((run / "lockstep.log").read_text(), r"(?m)^\S+ error error: rank 1: a fault on purpose")
        status = json.loads((run / "status.json").read_text())
        self.assertEqual((status["state"], status["exit_code"]), ("failed", 3), status)
        self.assertRegex(status["reason"], "^rank 1: a fault on purpose")

    def test_exception_of_a_single_rank(self):
        self.disturbed("exception", rank=0, ranks=None, code=3, says=[r"error: a fault on purpose"])
        self.assertRegex((self.folder / "run" / "lockstep.log").read_text(), r"(?m)^\S+ error error: a fault on purpose")
        self.ends_as_undisturbed(before=AT)

    def test_stop(self):
        self.hangs("stop", [r"rank 1: no answer"], f"rank 1: no answer from host {HOST}")

    def test_stop_of_the_chief(self):
        """Another rank writes into the run directory."""
        self.hangs("stop", [r"rank 0: no answer"], f"rank 0: no answer from host {HOST}", rank=0)

    def test_sleep(self):
        self.hangs("sleep", [rf"rank 1: in no communication call \(phase 'step {AT}'\) on host {HOST}, for \d+ s",
                             r"The last calls of the other ranks[^\n]*\n  rank 1: #\d+ '"],
                   rf"rank 1: in no communication call \(phase 'step {AT}'\) on host {HOST}, for \d+ s")

    def test_sleep_of_the_chief(self):
        """Its heartbeat goes on, and does not undo what another rank wrote."""
        self.hangs("sleep", [r"rank 0: in no communication call"], "rank 0: in no communication call", rank=0)

    def test_skipped_collective(self):
        self.hangs("skipped_collective", [rf"rank 1: waiting in '[^']+' \(phase 'step {AT + 1}'\)"],
                   "ranks wait in communication calls that do not match")

    def test_extra_collective(self):
        self.hangs("extra_collective", [r"'a fault on purpose: an extra collective'"],
                   "ranks wait in communication calls that do not match")

    def test_nan_gradient(self):
        """Every rank gets the NaN with the sum, and looks at the sum before the update."""
        self.disturbed("nan_gradient", rank=1, ranks=2, code=1,
                       says=[rf"error: .*the gradients of step {AT} are not finite: training has diverged"])
        self.ends_as_undisturbed(before=AT)

    def test_flipped_bit(self):
        """The check after every step precedes the step's checkpoint, so that no checkpoint is of diverged ranks."""
        self.disturbed("flipped_bit", rank=1, ranks=3, code=1,
                       sets=["comm.check_every_steps=1"],
                       says=[rf"error: .*diverged: the variables after step {AT} ", rf"rank 1 on host {HOST}"])
        self.ends_as_undisturbed(before=AT)

    def test_differing_config(self):
        result = self.disturbed("differing_config", rank=1, ranks=3, code=2, at=0,
                                says=[r"error: 'configuration' differs between the ranks",
                                      rf"rank 1 on host {HOST}: [^#]*a fault on purpose"])
        self.assertEqual(len(re.findall(r"(?:^|\n)error: ", result.err)), 1, str(result))
        self.assertEqual(checkpoints(self.folder / "run"), [])
        self.ends_as_undisturbed(before=0)

    def goes_on(self, kind, says):
        """A failed checkpoint during a run is only a warning. The run's first checkpoint fails, because later ones are
        skipped while one is being written, on a slow disk all of them but the last."""
        self.disturbed(kind, rank=0, ranks=2, code=0, says=says, at=EVERY, sets=BACKGROUND)
        self.ends_as_undisturbed()

    def test_full_disk(self):
        self.goes_on("ENOSPC", [r"warning: .*step \d+ could not be written.*disk is full"])

    def test_write_error(self):
        self.goes_on("EIO", [r"warning: .*step \d+ could not be written.*Input/output error"])

    def test_flush_error(self):
        self.goes_on("EIO_fsync", [r"warning: .*step \d+ could not be written.*flush to disk"])

    def test_short_write(self):
        self.goes_on("short_write", [])

    def test_full_disk_at_the_end_is_an_error(self):
        self.disturbed("ENOSPC", rank=0, ranks=2, code=4, at=STEPS, sets=BACKGROUND, says=[r"error: .*disk is full"])
        self.ends_as_undisturbed(before=STEPS)

    def killed_while_saving(self, kind):
        self.disturbed(kind, rank=0, ranks=2, code=137, sets=BACKGROUND,
                       says=[rf"process rank 0 .*on node {HOST} exited on signal 9"])
        self.ends_as_undisturbed(before=STEPS)

    def test_kill_in_write(self):
        self.killed_while_saving("kill_in_write")

    def test_kill_before_fsync(self):
        self.killed_while_saving("kill_before_fsync")

    def test_kill_before_rename(self):
        self.killed_while_saving("kill_before_rename")

    def test_kill_after_rename(self):
        """The file is complete, but the state file may not name it yet: the run may resume from it or the previous one."""
        self.disturbed("kill_after_rename", rank=0, ranks=2, code=137, sets=BACKGROUND, says=[r"process rank 0"])
        self.ends_as_undisturbed()

    def test_unknown_fault_is_rejected(self):
        result = self.start(*self.train_arguments("run", config=CONFIG, steps=1),
                            variables={"LOCKSTEP_FAULT": "1:0:fire"}).wait()
        self.assert_one_error(result, 2, "LOCKSTEP_FAULT.*'1:0:fire' is not step:rank:kind")


if __name__ == "__main__":
    main()
