# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""The shortest way through the whole program, for `ctest -L quick`: trains on 1 and 2 ranks, resumes, evaluates."""
from lockstep_run import LockstepTest, json, main


class QuickRun(LockstepTest):
    def test_ranks_and_a_resumed_run_end_alike(self):
        self.train("one", steps=6)
        self.train("two", ranks=2, steps=6)
        self.assert_same_run("one", "two")
        self.train("resumed", ranks=2, steps=3)
        self.train("resumed", steps=6)
        self.assert_same_run("one", "resumed")
        self.assertIn("accuracy", json.loads(self.lockstep("evaluate", self.folder / "one", "--quiet").out))


if __name__ == "__main__":
    main()
