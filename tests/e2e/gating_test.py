# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""optimizer.gating: the same bits, also of a run that is resumed with another gating, and what the log says of it."""
import unittest

from lockstep_run import DIGITS, LockstepTest, main

SMALL = ["comm.bucket_first_mb=0.001", "comm.bucket_mb=0.01"]


class GatingTest(LockstepTest):
    def log(self, run):
        return (self.folder / run / "lockstep.log").read_text(encoding="utf-8")

    def test_same_bits_and_resumed(self):
        self.train("graph", steps=8)
        self.train("early", ranks=2, steps=4, sets=[*SMALL, "optimizer.gating=none", "comm.overlap=on"])
        self.train("early", ranks=3, steps=8, sets=[*SMALL, "optimizer.gating=op"])
        self.assertEqual(self.digest("graph"), self.digest("early"))
        self.assertIn("optimizer.gating: none: variables are updated beside the backward pass", self.log("early"))
        self.assertIn("optimizer.gating: op:", self.log("early"))

    def test_reason_is_logged_once(self):
        self.train("skip", steps=1, sets=["optimizer.gating=none", "train.on_nan=skip"])
        self.assertEqual(self.log("skip").count("optimizer.gating is graph, not none: train.on_nan looks at all gradients"), 1)

    def test_check_says_it(self):
        said = lambda *sets: self.lockstep("check", DIGITS, *(part for text in sets for part in ("--set", text))).out
        self.assertIn("gating            op: variables are updated beside the backward pass\n", said("optimizer.gating=op"))
        self.assertIn("gating            graph, not none: clipping (section gradients) comes before the update\n",
                      said("optimizer.gating=none", "gradients.clip_norm=1"))
        self.assertNotIn("gating", said())

    def test_reference_names_are_found(self):
        result = self.train("bad", steps=1, sets=["optimizer.gating=GATE_NONE"], code=2)
        self.assert_one_error(result, 2, "It is called 'none' here")


if __name__ == "__main__":
    main()
