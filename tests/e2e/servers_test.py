# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""cluster.ps: without staleness the bits of training without servers, on any number of workers, servers and threads; with it
gradients of the variables that the definition names, again with the same bits; kills and resumes; dropped parts; refusals."""
import gzip
import json
import math
import os
import re
import signal
import time

from lockstep_run import DIGITS_DATA, STEPS_PER_EPOCH, LockstepTest, checkpoints, main, records, wait_until

CONFIG = f"""
seed: 3
shards: 8
data:
  format: csv
  path: {DIGITS_DATA}
  shape: [8, 8, 1]
  label_column: -1
  scale: 0.0625
  train: {{rows: [0, 1500]}}
  eval: {{rows: [1500, 1797]}}
model:
  layers:
    - conv2d: {{name: conv1, filters: 8, kernel: 3}}
    - layer_norm
    - relu
    - dropout: {{rate: 0.2}}
    - flatten
    - dense: {{name: hidden, units: 40}}
    - relu
    - dense: {{name: logits, units: 10}}
optimizer: {{adam: {{learning_rate: {{exponential_decay: {{initial: 0.004, decay_steps: 10, decay_rate: 0.8}}}}}}}}
train: {{batch_size: 64, epochs: 40}}
comm: {{check_every_steps: 10}}
"""
STEPS = 30  # an epoch has 24
MEET = ["cluster.meet_every_steps=10", "summary.every_steps=10"]
STALE = ["cluster.staleness=2", *MEET]

# Softmax regression on all of 100 digits in each step, from zeros.
LINEAR = f"""
seed: 1
shards: 4
data: {{format: csv, path: {DIGITS_DATA}, label_column: -1, scale: 0.0625, train: {{rows: [0, 100], repeat: 20}}}}
model:
  layers: [{{dense: {{name: logits, units: 10, kernel_initializer: zeros}}}}]
  loss: softmax_cross_entropy
optimizer: {{gradient_descent: {{learning_rate: 1.0}}}}
train: {{batch_size: 100, steps: 20}}
"""


def delayed_descent(staleness, meeting, steps=20, rate=1.0):
    """The loss of each step of gradient descent with gradients of the variables `staleness` updates before, but not of those
    before the last meeting."""
    with gzip.open(DIGITS_DATA, "rt") as file:
        rows = [[float(v) for v in line.split(",")] for line, _ in zip(file, range(100))]
    samples = [([v / 16 for v in row[:-1]] + [1.0], int(row[-1])) for row in rows]
    history, losses = [[[0.0] * 65 for _ in range(10)]], []
    for step in range(steps):
        weights = history[max(step // meeting * meeting, step - staleness)]
        gradient, loss = [[0.0] * 65 for _ in range(10)], 0.0
        for x, label in samples:
            z = [sum(a * b for a, b in zip(w, x)) for w in weights]
            total = sum(math.exp(v) for v in z)
            loss += math.log(total) - z[label]
            for c in range(10):
                d = (math.exp(z[c]) / total - (c == label)) / len(samples)
                gradient[c] = [g + d * v for g, v in zip(gradient[c], x)]
        losses.append(loss / len(samples))
        history.append([[w - rate * g for w, g in zip(*pair)] for pair in zip(history[-1], gradient)])
    return losses

# A table of which a step touches few rows, between layers that are trained too.
TABLE = f"""
seed: 3
shards: 8
data: {{format: csv, path: {DIGITS_DATA}, label_column: -1, train: {{rows: [0, 1500]}}}}
model:
  layers:
    - embedding: {{name: words, rows: 5000, units: 3}}
    - flatten
    - dense: {{name: hidden, units: 40}}
    - relu
    - dense: {{name: logits, units: 10}}
optimizer: {{adam: {{learning_rate: 0.002}}}}
train: {{batch_size: 32, epochs: 2}}
"""


class ServersTest(LockstepTest):
    def setUp(self):
        super().setUp()
        self.config = self.folder / "net.yaml"
        self.config.write_text(CONFIG)

    def run_with(self, name, workers, servers, sets=(), **options):
        return self.train(name, **{"config": self.config, "steps": STEPS, "ranks": workers + servers,
                                   "sets": [f"cluster.ps={servers}", *sets], **options})

    def test_without_staleness_the_bits_are_those_without_servers(self):
        self.train("plain", config=self.config, steps=STEPS)
        for workers, servers, threads in [(1, 1, 1), (2, 1, 1), (3, 2, 1), (4, 3, 1), (2, 1, 2)]:
            name = f"run-{workers}-{servers}-{threads}"
            self.run_with(name, workers, servers, threads=threads)
            self.assert_same_run("plain", name, name)
        self.run_with("meetings", 2, 2, MEET)
        self.assertEqual(self.digest("plain"), self.digest("meetings"))
        self.assertEqual([r for r in records(self.folder / "plain") if r["step"] % 10 == 0], records(self.folder / "meetings"))

    def test_with_staleness_the_bits_are_the_same_on_any_number_of_workers_and_servers(self):
        self.run_with("first", 1, 1, STALE)
        self.train("plain", config=self.config, steps=STEPS)
        self.assertNotEqual(self.digest("plain"), self.digest("first"))
        for workers, servers, threads in [(2, 1, 1), (3, 2, 1), (4, 3, 1), (2, 1, 2)]:
            name = f"run-{workers}-{servers}-{threads}"
            self.run_with(name, workers, servers, [*STALE, "cluster.placement=round_robin", "cluster.parts=8"], threads=threads)
            self.assert_same_run("first", name, name)

    def test_gradients_are_of_the_variables_that_the_definition_names(self):
        self.config.write_text(LINEAR)
        for staleness in (0, 1, 3):
            self.run_with("run", 2, 1, [f"cluster.staleness={staleness}", *MEET], steps=20)
            expected = delayed_descent(staleness, 10)
            for record in records(self.folder / "run"):
                self.assertAlmostEqual(record["loss"], expected[record["step"] - 1], delta=2e-6 * expected[0])
            self.assertEqual([r["step"] for r in records(self.folder / "run")], [10, 20])
            (self.folder / "run").rename(self.folder / f"done-{staleness}")

    def test_one_rank_is_worker_and_server_at_once_with_the_same_bits(self):
        self.train("plain", config=self.config, steps=STEPS)
        result = self.run_with("alone", 1, 0, ["cluster.ps=2"])
        self.assertIn("one rank is worker and server", result.err)
        self.assert_same_run("plain", "alone")
        self.run_with("several", 2, 1, STALE)
        self.run_with("stale", 1, 0, ["cluster.ps=1", *STALE])
        self.assert_same_run("several", "stale")
        self.assertNotEqual(self.digest("plain"), self.digest("stale"))
        self.run_with("first_parts", 1, 0, ["cluster.ps=1", "cluster.parts=8", "cluster.aggregate=5", *MEET])
        self.assertNotEqual(self.digest("plain"), self.digest("first_parts"))
        # A run goes on on any number.
        self.run_with("parts", 1, 0, ["cluster.ps=1", *STALE], steps=20)
        self.run_with("parts", 2, 2, STALE)
        self.assert_same_run("several", "parts")

    def test_tasks_say_which_ranks_are_servers_with_the_same_bits(self):
        self.run_with("last", 2, 1, STALE)
        sets = ['cluster.tasks={chief: [localhost], worker: [localhost], ps: ["rank:1"]}', *STALE]
        result = self.train("tasks", config=self.config, steps=STEPS, ranks=3, sets=sets)
        self.assertIn("servers are rank 1", result.err)
        self.assert_same_run("last", "tasks")
        sets[0] = 'cluster.tasks={worker: ["rank:0", "rank:3"], ps: ["rank:2", "rank:1"]}'
        result = self.train("two", config=self.config, steps=STEPS, ranks=4, sets=sets)
        self.assertIn("servers are ranks 2, 1", result.err)
        self.assert_same_run("last", "two")
        # Also where the first parts make an update, which servers tell each other.
        self.train("some", config=self.config, steps=STEPS, ranks=4, sets=[*sets, "cluster.parts=8", "cluster.aggregate=6"])

    def test_tf_config_says_which_ranks_are_servers(self):
        self.run_with("last", 2, 1)
        cluster = {"chief": ["localhost:1"], "worker": ["localhost:2"], "ps": ["localhost:3"]}
        environment = {"TF_CONFIG": json.dumps({"cluster": cluster})}
        sets = ["cluster.tasks=TF_CONFIG"]
        result = self.train("env", config=self.config, steps=STEPS, ranks=3, sets=sets, variables=environment)
        self.assertIn("servers are rank 2", result.err)
        self.assert_same_run("last", "env")
        self.lockstep("evaluate", self.folder / "env")  # needs no roles

        def refused(pattern, text, *more):
            result = self.train("no", config=self.config, steps=1, ranks=3, sets=[*sets, *more], variables={"TF_CONFIG": text}, code=2)
            self.assert_one_error(result, 2, pattern)
        refused("TF_CONFIG.*no JSON", "{")
        refused("the cluster has no chief", json.dumps({"cluster": {"worker": ["localhost:1"] * 3}}))
        refused("no rank is left for ps 0 on host n77", json.dumps({"cluster": {**cluster, "ps": ["n77:1"]}}))
        refused("two ranks are chief 0", json.dumps({"cluster": cluster, "task": {"type": "chief", "index": 0}}))
        refused("cluster.ps is 2, and the cluster has", environment["TF_CONFIG"], "cluster.ps=2")
        refused("does not train", json.dumps({"cluster": cluster, "task": {"type": "evaluator", "index": 0}}))
        result = self.train("no", config=self.config, steps=1, ranks=3, sets=sets, code=2)
        self.assert_one_error(result, 2, "the environment variable is not set")
        result = self.lockstep("check", self.config, "--set", "cluster.tasks=TF_CONFIG")
        self.assertIn("TF_CONFIG is not set here", result.out)

    def test_places_and_late_workers_change_no_bits(self):
        self.run_with("first", 2, 1, STALE)
        result = self.run_with("placed", 2, 2, [*STALE, 'cluster.places={"logits/*": 1, "*": 0}', "cluster.worker_delay_steps=20"])
        held = [float(v) for v in re.search(r"2 servers with ([\d., ]+) kB", result.err)[1].split(", ")]
        self.assertAlmostEqual(held[1], 4e-3 * (16 + 400), delta=1e-3)  # logits: 40 x 10, and the bias with its padding
        self.assert_same_run("first", "placed")
        for wrong, pattern in (('cluster.places={"logits/*": 2}', "'logits/.' is placed on task 2 of ps"),
                               ('cluster.places={"logit/*": 0}', "no trainable variable matches 'logit/.'")):
            result = self.train("no", config=self.config, steps=1, sets=["cluster.ps=2", wrong], ranks=3, code=2)
            self.assert_one_error(result, 2, pattern)

    def test_clipping_averages_and_regularization_where_all_ranks_meet_in_each_step(self):
        sets = ["gradients.clip_global_norm=0.5", "average={ema: {decay: 0.9}}",
                "model.regularization=[{variables: '*/kernel', l2: 1.0e-3}]"]
        self.train("plain", config=self.config, steps=STEPS, sets=sets)
        self.run_with("run", 2, 2, sets)
        self.assert_same_run("plain", "run")

    def test_regularization_and_clipping_by_value_between_meetings(self):
        sets = ["gradients.clip_value=0.01", "model.regularization=[{variables: '*/kernel', l2: 1.0e-3}]"]
        self.train("plain", config=self.config, steps=STEPS, sets=sets)
        self.run_with("run", 2, 2, [*sets, *MEET])
        self.assertEqual(self.digest("plain"), self.digest("run"))

    def test_files_that_are_read_while_they_are_used(self):
        self.lockstep("convert", self.config, self.folder / "digits.h5", "--chunk", "8")
        stored = re.sub(r"format: csv\n  path: .*", f"format: hdf5\n  path: {self.folder}/digits.h5\n  features: features\n  labels: labels",
                        CONFIG).replace("  shape: [8, 8, 1]\n  label_column: -1\n", "").replace("  eval: {rows: [1500, 1797]}\n", "")
        self.config.write_text(stored)
        self.run_with("whole", 2, 1, STALE)
        self.config.write_text(stored.replace("scale: 0.0625", "scale: 0.0625\n  memory_gb: 0.0001"))
        for workers in (1, 3):
            result = self.run_with(f"run-{workers}", workers, 1, STALE)
            self.assertIn("read while they are used", result.err)
            self.assertEqual(self.digest("whole"), self.digest(f"run-{workers}"))

    def test_checkpoints_are_those_of_a_plain_run_and_runs_go_on_with_and_without_servers(self):
        sets = ["checkpoint.every_steps=10", "checkpoint.keep=0", "checkpoint.background=false"]
        self.train("plain", config=self.config, steps=STEPS, sets=sets)
        self.run_with("run", 2, 2, [*sets, *MEET])
        for one, two in zip(checkpoints(self.folder / "plain"), checkpoints(self.folder / "run"), strict=True):
            a, b = self.header(one), self.header(two)
            self.assertEqual((a["tensors"], a["digest"]), (b["tensors"], b["digest"]))
        for steps, workers, servers in [(10, 2, 1), (20, 0, 0), (STEPS, 1, 2)]:
            if servers:
                self.run_with("parts", workers, servers, steps=steps)
            else:
                self.train("parts", config=self.config, steps=steps, ranks=2)
        self.assert_same_run("plain", "parts")

    def test_a_killed_worker_ends_the_job_and_the_run_goes_on_with_the_same_bits(self):
        sets = [*STALE, "checkpoint.every_steps=10", "checkpoint.background=false"]
        steps = 12 * STEPS_PER_EPOCH
        self.run_with("whole", 2, 1, sets, steps=steps)
        for kill in (0, 2):  # a worker, and the server
            name = f"killed-{kill}"
            job = self.start(*self.train_arguments(name, config=self.config, steps=steps, sets=["cluster.ps=1", *sets]), ranks=3)
            wait_until(lambda: len(checkpoints(self.folder / name)) > 0, 60, "a checkpoint")
            os.kill(job.ranks()[kill], signal.SIGKILL)
            result = job.wait()
            self.assertNotEqual(result.code, 0)
            self.assertLess(records(self.folder / name)[-1]["step"], steps)
            self.run_with(name, 3, 2, sets, steps=steps)
            self.assertEqual(self.digest("whole"), self.digest(name))

    def test_a_worker_that_stands_still_holds_nobody_up_but_by_the_staleness(self):
        steps = 12 * STEPS_PER_EPOCH
        result = self.run_with("whole", 2, 1, STALE, steps=steps)
        needed, ahead = re.search(r"of (\d+) versions of the variables, (\d+) had come when rank 0 needed them", result.err).groups()
        self.assertGreater(int(ahead), 0, f"of {needed}: variables come while a worker computes")
        job = self.start(*self.train_arguments("slow", config=self.config, steps=steps, sets=["cluster.ps=1", *STALE]), ranks=4)
        wait_until(lambda: len(records(self.folder / "slow")) > 2, 60, "steps")
        worker = job.ranks()[1]
        for _ in range(20):
            os.kill(worker, signal.SIGSTOP)
            time.sleep(0.03)
            os.kill(worker, signal.SIGCONT)
            time.sleep(0.002)
        self.assertEqual(job.wait().code, 0)
        self.assertEqual(self.digest("whole"), self.digest("slow"))

    def test_an_update_of_the_first_parts_drops_the_others(self):
        result = self.run_with("all", 2, 1, ["cluster.parts=8", "cluster.aggregate=8", *MEET])
        self.train("plain", config=self.config, steps=STEPS)
        self.assertEqual(self.digest("plain"), self.digest("all"))
        result = self.run_with("some", 3, 2, ["cluster.parts=8", "cluster.aggregate=6", *MEET], steps=240)
        self.assertRegex(result.err, r"an update takes the first 6 parts")
        losses = [record["loss"] for record in records(self.folder / "some")]
        self.assertTrue(all(math.isfinite(loss) for loss in losses))
        self.assertLess(losses[-1], 0.5 * losses[0])

    def test_gradients_of_tables_travel_as_rows(self):
        """With the bits of training without servers, in which the table's gradient is sparse or dense."""
        self.config.write_text(TABLE)
        self.train("plain", config=self.config, steps=STEPS)
        for workers, servers in ((1, 1), (2, 1), (2, 2)):
            result = self.run_with(f"rows-{workers}-{servers}", workers, servers)
            self.assertIn("gradients of words/embeddings travel to their server as rows, where a part touches few", result.err)
            self.assert_same_run("plain", f"rows-{workers}-{servers}")
        self.run_with("late", 2, 1, STALE)
        self.run_with("later", 3, 2, STALE)
        self.assertEqual(self.digest("late"), self.digest("later"))

    def test_more_servers_than_variables(self):
        self.config.write_text(LINEAR)
        self.run_with("first", 1, 1, STALE, steps=20)
        result = self.run_with("run", 1, 3, STALE, steps=20)
        self.assertIn("3 servers with 0.064, 2.56, 0 kB", result.err)
        self.assert_same_run("first", "run")

    def test_a_loss_that_is_not_finite_ends_the_run(self):
        for name, sets in (("run", []), ("late", STALE)):
            result = self.train(name, config=self.config, steps=STEPS, ranks=3, code=1,
                                sets=["cluster.ps=1", "optimizer={gradient_descent: {learning_rate: 1.0e+30}}", *sets])
            self.assert_one_error(result, 1, r"(the loss of step \d+ is (-?nan|inf)|the gradients of step \d+ are not finite): training has diverged")
            self.assertIn("with parameter servers a step is not computed once more", result.err)

    def test_servers_hold_about_as_many_bytes(self):
        result = self.run_with("run", 2, 3, steps=1)
        held = [float(v) for v in re.search(r"3 servers with ([\d., ]+) kB", result.err)[1].split(", ")]
        self.assertEqual(len(held), 3)
        result = self.lockstep("check", self.config, "--set", "cluster.ps=3")
        self.assertRegex(result.out, r"servers +3 servers with [\d., ]+ kB of variables \(greedy\); staleness 0; ranks meet every step")

    def test_with_staleness_digits_are_learned(self):
        """The accuracy of the run without servers, at a smaller rate."""
        sets = ["optimizer.adam.learning_rate=0.001", "eval.every_epochs=10", "cluster.staleness=1", *MEET]
        self.run_with("run", 2, 1, sets, steps=20 * STEPS_PER_EPOCH)
        self.assertGreater(records(self.folder / "run", "eval")[-1]["accuracy"], 0.9)

    def test_what_it_does_not_go_with(self):
        def refused(pattern, *sets, ranks=2, ps=1):
            result = self.train("no", config=self.config, steps=1, sets=[f"cluster.ps={ps}", *sets], ranks=ranks, code=2)
            self.assert_one_error(result, 2, pattern)

        refused("2 of 2 ranks are servers, and none is left to compute", ps=2)
        refused("staleness.*has no effect without servers", "cluster.staleness=1", ps=0)
        refused("one of cluster.ps and optimizer.shard", "optimizer.shard=true")
        refused("LAMB|whole variables", "optimizer={lamb: {learning_rate: 0.01}}")
        refused("comm.compress|not compressed", "comm.compress=bfloat16")
        refused("summary.every_steps is 7, but with cluster.ps all ranks meet every 10 steps", "cluster.staleness=1", "summary.every_steps=7")
        refused("moving average", "average={ema: {decay: 0.9}}", *STALE)
        refused("no rank has all gradients", "gradients.clip_global_norm=1", *STALE)
        refused("a batch has 8 parts, and 9 of them are wanted", "cluster.aggregate=9", "cluster.parts=8")
        self.config.write_text(self.config.read_text().replace("layer_norm", "batch_norm"))
        refused("batch_norm needs all samples of a batch")


if __name__ == "__main__":
    main()
