# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""optimizer.shard: the same bits and the same checkpoints as without it, on any number of ranks and threads, with what works
on gradients and variables; runs that go on with and without it; a full disk; what it does not go with."""
import os
import unittest

from lockstep_run import DIGITS, DIGITS_DATA, LockstepTest, checkpoints, main, records

HAS_FAULTS = os.environ["LOCKSTEP_HAS_FAULTS"] == "1"
SHARD = "optimizer.shard=true"
# Enough variables for parts on eight ranks; a table with a sparse gradient; batch norm has moving statistics.
CONFIG = f"""
seed: 3
shards: 8
data:
  format: csv
  path: {DIGITS_DATA}
  label_column: -1
  train: {{{{rows: [0, 1500]}}}}
  eval: {{{{rows: [1500, 1797]}}}}
model:
  layers:
    - embedding: {{{{name: words, rows: {{rows}}, units: 3}}}}
    - flatten
    - dense: {{{{name: hidden, units: 300}}}}
    - batch_norm
    - relu
    - dense: {{{{name: more, units: 120}}}}
    - relu
    - dense: {{{{name: logits, units: 10}}}}
optimizer: {{{{adam: {{{{learning_rate: 0.002}}}}}}}}
train: {{{{batch_size: 32, epochs: 2}}}}
comm: {{{{bucket_first_mb: 0.05, bucket_mb: 0.2}}}}
"""
STEPS = 12


class ShardingTest(LockstepTest):
    def setUp(self):
        super().setUp()
        self.config = self.folder / "net.yaml"
        self.config.write_text(CONFIG.format(rows=5000))

    def case(self, name, sets, forms):
        """Runs with the update shared are that of one rank, which updates everything."""
        self.train(name, config=self.config, steps=STEPS, sets=sets)
        self.assertEqual(len(records(self.folder / name)), STEPS)
        for ranks, threads in forms:
            run = f"{name}-{ranks}-{threads}"
            self.train(run, config=self.config, steps=STEPS, sets=[*sets, SHARD], ranks=ranks, threads=threads)
            self.assert_same_run(name, run, run)

    def test_same_bits(self):
        self.case("adam", [], [(1, 1), (2, 1), (2, 2), (3, 1), (4, 1), (4, 2), (8, 1)])

    def test_sums_in_shared_memory_and_by_messages(self):
        """One digest; the log says how gradients are summed."""
        shared = "gradients: summed in memory that all ranks of this host see"
        log = lambda run: (self.folder / run / "lockstep.log").read_text(encoding="utf-8")
        self.case("lars", ["optimizer={lars: {learning_rate: 0.5, trust_coefficient: 0.02}}"], [(2, 1), (3, 2)])
        self.assertIn(shared, log("lars-3-2"))
        for name, sets, ranks in [("off", [SHARD, "comm.shared_memory=off"], 2), ("on", ["comm.shared_memory=on"], 3),
                                  ("overlap", ["comm.shared_memory=on", "comm.overlap=on"], 4),
                                  ("compress", ["comm.shared_memory=on", "comm.compress=bfloat16"], 2)]:
            self.train(name, config=self.config, steps=STEPS, sets=sets, ranks=ranks)
            self.assertEqual(shared in log(name), name != "off")
        self.train("alone", config=self.config, steps=STEPS)
        self.train("rounded", config=self.config, steps=STEPS, sets=["comm.compress=bfloat16"])
        self.assertEqual({self.digest(run) for run in ("off", "on", "overlap")}, {self.digest("alone")})
        self.assertEqual(self.digest("compress"), self.digest("rounded"))
        self.assertNotIn(shared, log("alone"))

    def test_clipping_regularization_and_averages(self):
        sets = ["gradients.clip_global_norm=0.5", "gradients.record_norm=true",
                "model.regularization=[{variables: '*/kernel', l1: 1.0e-4, l2: 1.0e-3}]",
                "average={ema: {decay: 0.9, start_step: 3}}", "optimizer={momentum: {learning_rate: 0.02}}"]
        self.case("all", sets, [(2, 1), (3, 2), (4, 1)])

    def test_loss_scale(self):
        sets = ["precision.compute=float16", "precision.loss_scale=dynamic"]
        self.case("scaled", sets, [(2, 1), (3, 1)])
        self.assertGreater(records(self.folder / "scaled")[0]["loss_scale"], 1)

    def test_checkpoints_are_those_of_a_plain_run(self):
        sets = ["checkpoint.every_steps=4", "checkpoint.keep=0", "checkpoint.background=false"]
        self.train("plain", config=self.config, steps=STEPS, sets=sets)
        self.train("shared", config=self.config, steps=STEPS, sets=[*sets, SHARD], ranks=3)
        plain, shared = (checkpoints(self.folder / run) for run in ("plain", "shared"))
        self.assertEqual([path.name for path in plain], [path.name for path in shared])
        self.assertEqual(len(plain), 3)
        for one, two in zip(plain, shared):
            a, b = self.header(one), self.header(two)
            self.assertEqual(a["tensors"], b["tensors"])
            self.assertEqual(a["digest"], b["digest"])
            self.assertEqual(one.stat().st_size, two.stat().st_size)

    def test_runs_go_on_with_and_without(self):
        self.train("whole", config=self.config, steps=STEPS)
        for name, jobs in {"less": [(4, [SHARD]), (2, []), (3, [SHARD])], "more": [(2, []), (4, [SHARD]), (1, [])]}.items():
            for steps, (ranks, sets) in zip((4, 8, STEPS), jobs):
                self.train(name, config=self.config, steps=steps, sets=sets, ranks=ranks)
            self.assert_same_run("whole", name, name)

    @unittest.skipUnless(HAS_FAULTS, "built without faults")
    def test_full_disk(self):
        """All ranks go on after a checkpoint that failed in the middle, and end together if it was the last."""
        sets = [SHARD, "checkpoint.every_steps=4"]
        job = self.start(*self.train_arguments("run", config=self.config, steps=STEPS, sets=sets), ranks=3,
                         variables={"LOCKSTEP_FAULT": "4:0:ENOSPC"})
        result = job.wait()
        self.assertEqual(result.code, 0, str(result))
        self.assertRegex(result.err, r"warning: .*step 4 could not be written.*disk is full", str(result))
        self.assertEqual(len(checkpoints(self.folder / "run")), 2)
        self.train("whole", config=self.config, steps=STEPS)
        self.assertEqual(self.digest("whole"), self.digest("run"))
        job = self.start(*self.train_arguments("last", config=self.config, steps=STEPS, sets=sets), ranks=3,
                         variables={"LOCKSTEP_FAULT": f"{STEPS}:0:ENOSPC"})
        self.assert_one_error(job.wait(), 4, "disk is full")

    def test_what_it_does_not_go_with(self):
        def refused(pattern, *more, sets=(), ranks=2):
            result = self.lockstep(*self.train_arguments("no", config=self.config, steps=1, sets=[SHARD, *sets], more=more),
                                   ranks=ranks, code=2)
            self.assert_one_error(result, 2, pattern)

        refused("shard.*has no parts", sets=["comm.reduction=fast"])
        refused("shard.*cannot be recorded", "--record", "1")
        result = self.lockstep("check", self.config, "--set", SHARD)
        self.assertRegex(result.out, r"sharded +the update: of R ranks")
        self.config.write_text(self.config.read_text().replace("0.002}}", "0.002}, shards: true}"))
        result = self.lockstep("check", self.config, code=2)
        self.assertRegex(result.err, r"shards[^\n]*\n[^\n]*Did you mean 'shard'|Did you mean 'shard'", str(result))


if __name__ == "__main__":
    main()
