# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""lockstep train --record, lockstep replay: a step of a run of many ranks is repeated on one and has the same bits,
layer by layer; where it has not, the first layer that differs is named."""
import json
import os
import subprocess
import unittest

from lockstep_run import LockstepTest, main

CHANGE_WEIGHT = os.environ["LOCKSTEP_CHANGE_WEIGHT"]
HAS_FAULTS = os.environ["LOCKSTEP_HAS_FAULTS"] == "1"


class ReplayTest(LockstepTest):
    def record(self, run_dir, steps, record, ranks=4, variables=None, code=0, **options):
        more = [word for step in record for word in ("--record", step)]
        arguments = self.train_arguments(run_dir, steps=steps, more=more, **options)
        result = self.start(*arguments, ranks=ranks, variables=variables).wait()
        self.assertEqual(result.code, code, str(result))
        return result

    def replay(self, run_dir, step, *more, ranks=None, code=0, variables=None):
        job = self.start("replay", self.folder / run_dir, "--step", step, "--quiet", *more, ranks=ranks,
                         variables=variables)
        result = job.wait()
        self.assertEqual(result.code, code, str(result))
        return result

    def test_step_of_four_ranks_repeats_on_one(self):
        self.record("run", 24, [3, 24])  # the 24th has 28 samples: microshards of 3 and 4
        for step in (3, 24):
            found = json.loads(self.replay("run", step, "--json").out)
            self.assertTrue(found["equal"], found)
            self.assertEqual(len(found["recorded_on"]), 4)
            self.assertGreater(found["rows"], 40)
            self.assertEqual((found["differences"], found["environment"]), ([], []))
        text = self.replay("run", 24, "--threads", 2, ranks=3).out
        self.assertIn("step 24, recorded on 4 ranks, repeated on 3 ranks: equal, layer by layer (", text)

    def test_recording_changes_no_bits_or_checkpoints(self):
        sets = ["checkpoint.every_steps=2", "checkpoint.keep=2"]
        self.record("recorded", 8, [3, 5], ranks=2, sets=sets)
        self.train("plain", ranks=2, steps=8, sets=sets)
        self.assert_same_run("plain", "recorded")
        for run in ("recorded", "plain"):
            listed = json.loads(self.lockstep("checkpoint", "list", self.folder / run, "--json").out)
            self.assertEqual(len(listed), 2, listed)
        self.record("recorded", 12, [10], ranks=3, sets=sets)  # a resumed run records, too; older records stay
        for step in (3, 5, 10):
            self.replay("recorded", step)

    def test_changed_weight_names_first_differing_layer(self):
        self.record("run", 4, [4], ranks=2)
        state = self.folder / "run" / "records" / "step-00000004.h5"
        subprocess.run([CHANGE_WEIGHT, state, "variables/conv2/kernel", "7"], check=True, timeout=60)
        self.lockstep("checkpoint", "verify", state)
        text = self.replay("run", 4, code=1).out
        self.assertIn("first in order of execution: forward of conv2: output\n"
                      "    microshards 0-7 of 8, computed by ranks 0-1 on host ", text)
        self.assertIn("libraries and data are as they were", text)
        found = json.loads(self.replay("run", 4, "--json", code=1).out)
        self.assertFalse(found["equal"])
        first = found["differences"][0]
        self.assertEqual((first["stage"], first["layer"], first["what"]), ("forward", "conv2", "output"))
        before = [row["layer"] for row in found["differences"] if row["stage"] == "forward"]
        self.assertNotIn("conv1", before)

    @unittest.skipUnless(HAS_FAULTS, "this build has no faults on purpose")
    def test_a_rank_that_computed_wrongly_is_named(self):
        """One bit of one weight in one rank's memory: a replay finds that rank's microshards."""
        self.record("run", 6, [5], variables={"LOCKSTEP_FAULT": "4:1:flipped_bit"}, sets=["comm.check_every_steps=0"])
        found = json.loads(self.replay("run", 5, "--json", code=1).out)
        first = found["differences"][0]
        self.assertEqual((first["stage"], first["layer"]), ("forward", "logits"))
        self.assertEqual((first["microshards"], first["ranks"]), ([2, 3], [1]))

    def test_another_instruction_set_is_named(self):
        if "instruction set  baseline" in self.lockstep("info").out:
            self.skipTest("this processor has one level only")
        self.record("run", 2, [2], ranks=1)
        job = self.start("replay", self.folder / "run", "--step", 2, variables={"LOCKSTEP_ISA": "baseline"})
        result = job.wait()
        self.assertIn(result.code, (0, 1), str(result))
        self.assertRegex(result.out, r"instruction set: avx\w+ there, baseline here")

    def test_step_that_ends_the_run_is_kept_in_part(self):
        result = self.record("run", 9, [1, 2, 3, 4], ranks=2, code=1,
                             sets=["optimizer={gradient_descent: {learning_rate: 1.0e30}}"])
        self.assertRegex(result.err, "error: .*(nan|inf)")
        steps = sorted(path.stem for path in (self.folder / "run" / "records").glob("*.json"))
        last = int(steps[-1].removeprefix("step-"))
        self.assertLess(last, 4)
        self.assertIn("did not come to the end of this step", self.replay("run", last).out)

    def test_steps_that_were_not_recorded(self):
        result = self.record("run", 5, [2, 9], ranks=2)
        self.assertIn("step 9 was to be recorded, but the run ended at step 5", result.err)
        result = self.record("run", 7, [4, 6], ranks=2)
        self.assertIn("step 4 was to be recorded, but the run goes on at step 6", result.err)
        self.assert_one_error(self.replay("run", 4, ranks=2, code=2), 2, r"step 4 was not recorded\n  Recorded: 2, 6\.")
        self.train("other", steps=1)
        self.assert_one_error(self.replay("other", 1, code=2), 2, "No step of this run was: lockstep train --record N")
        record = self.folder / "run" / "records" / "step-00000002.json"
        record.write_text(record.read_text(encoding="utf-8")[:100], encoding="utf-8")
        self.assert_one_error(self.replay("run", 2, ranks=2, code=4), 4, "this is no record of a step")
        record.unlink()
        self.assert_one_error(self.replay("run", 2, code=2), 2, "step 2 was begun, but the run ended before")


if __name__ == "__main__":
    main()
