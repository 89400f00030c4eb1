# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Rules count the updates of each variable: a layer that is unfrozen late moves as in a new run, steps without an update do not
count, and runs that are interrupted go on with the same bits."""
import math
import random
import shutil

from lockstep_run import LockstepTest, checkpoints, main

RATE = 0.001
RULES = {
    "adam": f"{{learning_rate: {RATE}, epsilon: 1.0e-12}}",
    "adamw": f"{{learning_rate: {RATE}, epsilon: 1.0e-12, weight_decay: 0}}",
    "nadam": f"{{learning_rate: {RATE}}}",
    "radam": f"{{learning_rate: {RATE}}}",
    "lamb": f"{{learning_rate: {RATE}, adapt_vectors: true}}",
    "adagrad_da": f"{{learning_rate: {RATE}, l1: 0.00001, l2: 1}}",
    "muon": f"{{learning_rate: {RATE}}}",
    "shampoo": f"{{learning_rate: {RATE}, root_every: 7}}",
}
FALLING = "{one_cycle: {peak: 0.8, initial: 0.95, last: 0.95, total_steps: 70}}"
SCHEDULED = f"{{learning_rate: {RATE}, beta1: {FALLING}, beta2: {FALLING}}}"
FROZEN = "model.frozen=[first]"
READ = """
import h5py, sys
with h5py.File(sys.argv[1]) as file:
    print([file["variables/first/" + name][...].ravel().tolist() for name in ("kernel", "bias")])
"""


class UpdatesTest(LockstepTest):
    def setUp(self):
        super().setUp()
        numbers = random.Random(5)
        self.rows = [[numbers.uniform(-1, 1) for _ in range(4)] + [numbers.randrange(10)] for _ in range(128)]

    def config(self, rule, options=None, samples=64, batch=64, bad=None):
        """One batch is all of the samples, in their order, unless `batch` is smaller."""
        rows = [list(row) for row in self.rows[:samples]]
        if bad is not None:
            rows[bad][:4] = [3e38] * 4
        (self.folder / "data.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
        path = self.folder / "net.yaml"
        path.write_text(f"""
seed: 3
shards: 8
data: {{format: csv, path: data.csv, label_column: -1}}
model:
  layers:
    - dense: {{name: first, units: 8}}
    - {"tanh" if bad is None else "relu"}
    - dense: {{name: last, units: 10}}
optimizer: {{{rule}: {options or RULES[rule]}}}
train: {{batch_size: {batch}, epochs: 5000, shuffle: false}}
checkpoint: {{keep: 0, background: false}}
""")
        return path

    def first(self, run, step):
        """Kernel and bias of the first layer."""
        return self.read_by_h5py(READ, self.folder / run / "checkpoints" / f"step-{step:08}.h5")

    def updates(self, run):
        return [tensor["path"] for tensor in self.header(checkpoints(self.folder / run)[-1])["tensors"]
                if tensor["path"].startswith("updates/")]

    def test_an_unfrozen_layer_begins_at_the_rate(self):
        """Its first move is that of a new run with these variables, whatever the step."""
        for rule in RULES:
            config = self.config(rule)
            steps = 1000 if rule == "adam" else 200
            self.train(f"{rule}-1", config=config, steps=steps, sets=[FROZEN])
            self.assertEqual(self.updates(f"{rule}-1"), [], "each step was an update, as in files of earlier versions")
            for ranks in (2, 3):
                shutil.copytree(self.folder / f"{rule}-1", self.folder / f"{rule}-{ranks}")
            self.train(f"{rule}-new", config=config, steps=1,
                       sets=[f"warm_start.checkpoint={self.folder / f'{rule}-1'}"])
            expected, before = self.first(f"{rule}-new", 1), self.first(f"{rule}-1", steps)
            for ranks in (1, 2, 3):
                run = f"{rule}-{ranks}"
                self.train(run, config=config, steps=steps + 1, sets=["model.frozen=[]"], more=["--accept-changes"], ranks=ranks)
                self.assertEqual(self.digest(f"{rule}-1"), self.digest(run))
                self.assertEqual(self.updates(run), ["updates/first/bias", "updates/first/kernel"])
            after = self.first(f"{rule}-1", steps + 1)
            moves = [abs(a - b) / RATE for a, b in zip(after[0], before[0])]
            mean = math.fsum(moves) / len(moves)
            if rule in ("adam", "adamw"):
                self.assertLess(abs(mean - 1), 0.0005, rule)
            elif rule == "nadam":  # 1 + (1 - beta1) mu / (1 - mu^2), mu = 0.45
                self.assertLess(abs(mean - 1.0565), 0.001, rule)
            for one, other in zip(after, expected):
                for a, b in zip(one, other):
                    self.assertLessEqual(abs(a - b), 1e-4 * RATE + 1e-6 * abs(b), rule)
            self.assertNotEqual(after, before)

    def test_an_interrupted_run_after_unfreezing(self):
        for rule, options in (("adam", None), ("nadam", SCHEDULED), ("adagrad_da", None), ("lamb", SCHEDULED), ("shampoo", None)):
            config = self.config(rule, options, samples=128)
            name = rule + ("" if options is None else "-scheduled")
            self.train(f"{name}-frozen", config=config, steps=20, sets=[FROZEN])
            runs = [(1, 1, [27], ()), (2, 1, [23, 27], ()), (3, 2, [27], ()), (4, 1, [22, 27], ())]
            if rule == "nadam":
                runs += [(2, 1, [23, 27], ("optimizer.shard=true",))]
            for number, (ranks, threads, stops, sets) in enumerate(runs):
                run = f"{name}-{number}"
                shutil.copytree(self.folder / f"{name}-frozen", self.folder / run)
                for steps in stops:
                    self.train(run, config=config, steps=steps, ranks=ranks, threads=threads, more=["--accept-changes"],
                               sets=["model.frozen=[]", *sets])
                self.assert_same_run(f"{name}-0", run, f"{name}, {ranks} ranks, {sets}")

    def test_steps_without_an_update_do_not_count(self):
        """The batch of the first step has a sample of huge features."""
        config = self.config("adam", samples=128, bad=3)
        skip = ["train.on_nan=skip", "checkpoint.every_steps=1"]
        result = self.train("one", config=config, steps=2, sets=skip)
        self.assertRegex(result.err, "the loss of step 1 is .* update is skipped")
        before, after = self.first("one", 1), self.first("one", 2)
        moves = [abs(a - b) / RATE for a, b in zip(after[0], before[0]) if a != b]  # a unit may be 0 for all samples
        self.assertGreater(len(moves), 15)
        self.assertLess(abs(math.fsum(moves) / len(moves) - 1), 0.001)
        self.assertEqual(len(self.updates("one")), 4)

    def test_skipped_steps_and_interruptions(self):
        for rule, options in (("adamw", SCHEDULED), ("nadam", None), ("shampoo", None)):
            config = self.config(rule, options, samples=128, batch=32, bad=70)  # the third batch of four
            name = rule + ("" if options is None else "-scheduled")
            sets = ["train.on_nan=skip"]
            self.train(name, config=config, steps=11, sets=sets)
            self.assertEqual(len(self.updates(name)), 4)
            for ranks, threads, stops, more in ((1, 2, [5, 11], ()), (2, 1, [2, 3, 11], ()), (4, 1, [11], ()),
                                                (3, 1, [4, 11], ("optimizer.shard=true",))):
                if more and rule == "shampoo":
                    continue
                run = f"{name}-{ranks}-{threads}-{len(more)}"
                for steps in stops:
                    self.train(run, config=config, steps=steps, sets=[*sets, *more], ranks=ranks, threads=threads)
                self.assert_same_run(name, run, run)

    def test_with_servers(self):
        """Workers, whose chief writes the file, count the updates of servers."""
        config = self.config("adam", samples=128)
        for run, servers in (("none", []), ("ps", ["--set", "cluster.ps=1"])):
            common = ["--set", "summary.every_steps=4", *servers]
            if servers:
                common += ["--set", "cluster.meet_every_steps=4"]
            ranks = 3 if servers else 2
            for steps, frozen in ((8, "[first]"), (16, "[]"), (24, "[]")):
                self.lockstep("train", config, "--run-dir", self.folder / run, "--steps", steps, "--accept-changes",
                              "--set", f"model.frozen={frozen}", *common, ranks=ranks)
            self.assertEqual(len(self.updates(run)), 2)
        self.assertEqual(self.digest("none"), self.digest("ps"))


if __name__ == "__main__":
    main()
