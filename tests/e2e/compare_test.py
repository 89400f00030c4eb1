# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""lockstep compare: what differs between runs, and for runs that should be equal the first step, variable and element where
they part."""
import os
import re
import shutil
import subprocess

from lockstep_run import LockstepTest, main, records

CHANGE_WEIGHT = os.environ["LOCKSTEP_CHANGE_WEIGHT"]


class CompareTest(LockstepTest):
    # Written within the step, so that every checkpoint is of its step, however busy the disk is.
    SETS = ["checkpoint.every_steps=8", "eval.every_epochs=1", "checkpoint.background=false"]

    def runs(self, *names, **options):
        for name in names:
            self.train_once(name, ranks=2, steps=24, sets=self.SETS, more=["--record", 5], **options)

    def compare(self, *names, more=(), code=0):
        return self.lockstep("compare", *(self.folder / name for name in names), *more, code=code)

    def test_equal_runs_on_other_ranks_are_equal(self):
        self.runs("a")
        self.train("b", steps=24, sets=self.SETS, more=["--record", 5])  # one rank
        out = self.compare("a", "b", more=["--expect-equal"]).out
        self.assertIn("a and b: equal\n", out)
        self.assertRegex(out, r"records +equal: \d+ values of 24 steps")
        self.assertRegex(out, r"checkpoints +equal: steps 4, 8, 16, 24")  # 4: the state before the recorded step
        self.assertRegex(out, r"recorded +equal, layer by layer: step 5")

    def test_other_learning_rate_parts_in_the_first_step_after_it(self):
        self.runs("a")
        self.train("b", ranks=2, steps=24, sets=[*self.SETS, "optimizer.adam.learning_rate=0.01"], more=["--record", 5])
        page = self.folder / "page.html"
        out = self.compare("a", "b", more=["--expect-equal", "--output", page], code=1).out
        one, two = records(self.folder / "a"), records(self.folder / "b")
        first = next(a["step"] for a, b in zip(one, two) if a != b)
        self.assertRegex(out, rf"records +part at step {first}: train ")
        self.assertRegex(out, r"checkpoints +part at step 4: variables/\S+ \[[\d, ]+\]: \S+ and \S+; \d+ of its values differ")
        self.assertRegex(out, r"recorded +part in step 5: forward of conv1")
        self.assertIn("optimizer.learning_rate", out)
        self.assertEqual(self.compare("a", "b").code, 0)  # without --expect-equal a difference is no failure
        text = page.read_text(encoding="utf-8")
        self.assertIn("optimizer.learning_rate", text)
        self.assertIn("<h2>Where they part</h2>", text)
        self.assertEqual(len(set(re.findall(r'<span class="key (c\d)">(?:a|b)</span>', text))), 2)  # a colour each

    def test_one_changed_weight_is_named(self):
        self.runs("a")
        shutil.copytree(self.folder / "a", self.folder / "b")
        changed = self.folder / "b" / "checkpoints" / "step-00000016.h5"
        subprocess.run([CHANGE_WEIGHT, changed, "variables/conv2/kernel", "7"], check=True, timeout=60)
        out = self.compare("a", "b", more=["--expect-equal"], code=1).out
        self.assertRegex(out, r"records +equal")
        self.assertRegex(out, r"checkpoints +part at step 16: variables/conv2/kernel \[0, 0, 0, 7\]: \S+ and \S+; 1 of its values differ")
        self.assertIn("equal before: steps 4, 8", out)

    def test_different_models_are_said_and_nothing_to_compare_is_not_equal(self):
        self.runs("a")
        self.train("b", steps=24, sets=[*self.SETS, "model.layers.conv2.filters=32"], more=["--record", 5])
        out = self.compare("a", "b", more=["--expect-equal"], code=1).out
        self.assertIn("model.layers.conv2.filters", out)
        shutil.copytree(self.folder / "a", self.folder / "c")
        (self.folder / "c" / "metrics.jsonl").unlink()
        shutil.rmtree(self.folder / "c" / "checkpoints")
        shutil.rmtree(self.folder / "c" / "records")
        self.assertIn("nothing to compare", self.compare("a", "c", more=["--expect-equal"], code=1).out)

    def test_errors(self):
        self.runs("a")
        self.assert_one_error(self.compare("a", code=2), 2, "RUN")
        self.assert_one_error(self.compare("a", "nowhere", code=2), 2, "there is no such folder")


if __name__ == "__main__":
    main()
