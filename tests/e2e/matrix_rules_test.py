# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Rules that compute whole matrices, each on one rank: the same bits on any number of ranks and threads, clipped, averaged and
resumed."""
from lockstep_run import DIGITS, LockstepTest, main

RULES = {
    "muon": "muon: {learning_rate: 0.002, adamw_for: ['logits/*']}",
    "muon-shape": "muon: {learning_rate: 0.02, scale: shape, nesterov: false, iterations: 4, adamw_rate_factor: 0.1}",
    "shampoo": "shampoo: {learning_rate: 0.002, block_size: 24, root_every: 4, adamw_for: ['logits/*']}",
    "shampoo-2018": "shampoo: {learning_rate: 0.05, root_every: 3, start_step: 2, grafting: none, statistics_decay: 1, beta1: 0}",
}
STEPS = 30
SETS = ["eval.every_epochs=0", "gradients={clip_global_norm: 1}", "average={ema: {decay: 0.9}}"]


class MatrixRulesTest(LockstepTest):
    def run_rule(self, name, rule, steps=STEPS, **options):
        self.train(name, config=DIGITS, steps=steps, sets=[*SETS, f"optimizer={{{rule}}}"], **options)

    def test_same_bits_and_resumed(self):
        for name, rule in RULES.items():
            self.run_rule(name, rule, ranks=1, threads=1)
            for ranks, threads in ((3, 1), (2, 2)) if "-" in name else ((2, 1), (3, 1), (4, 1), (8, 1), (1, 2), (2, 2)):
                run = f"{name}-{ranks}-{threads}"
                self.run_rule(run, rule, ranks=ranks, threads=threads)
                self.assert_same_run(name, run, run)
            self.run_rule(f"{name}-resumed", rule, steps=11, ranks=3)
            self.run_rule(f"{name}-resumed", rule, ranks=2)
            self.assertEqual(self.digest(name), self.digest(f"{name}-resumed"))

    def test_a_recorded_step_is_repeated_on_other_ranks(self):
        """The owners' state before the step is in the record."""
        self.run_rule("recorded", RULES["shampoo"], steps=8, ranks=3, more=["--record", 6])
        replayed = self.lockstep("replay", self.folder / "recorded", "--step", 6, ranks=2)
        self.assertIn("equal, layer by layer", replayed.out)

    def test_other_blocks_begin_anew(self):
        self.run_rule("blocks", RULES["shampoo"], steps=2)
        other = RULES["shampoo"].replace("block_size: 24", "block_size: 16")
        changed = self.lockstep(*self.train_arguments("blocks", config=DIGITS, steps=3, sets=[*SETS, f"optimizer={{{other}}}"],
                                                      more=["--accept-changes"]))
        self.assertRegex(changed.err, r"state of optimizer of .*/kernel.*: begun anew: .*blocks of 24.*blocks of 16")

    def test_check_says_how_each_variable_is_updated(self):
        out = self.lockstep("check", DIGITS, "--set", f"optimizer={{{RULES['muon']}}}").out
        self.assertIn("orthogonalized", out)
        self.assertRegex(out, r"whole matrices +[0-9.]+ MB of work memory with one thread\n")
        out = self.lockstep("check", DIGITS, "--set", f"optimizer={{{RULES['shampoo']}}}").out
        self.assertIn("in blocks of at most 24 x 24, with roots every 4 updates from update 4 on", out)
        self.assertRegex(out, r"one thread, and [0-9.]+ MB of statistics and roots, divided among the ranks")


if __name__ == "__main__":
    main()
