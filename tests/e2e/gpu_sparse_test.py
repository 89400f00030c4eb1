# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Gradients of tables that stay rows and values on GPUs: the bits are those of dense ones, on any number of ranks, whether they
share a GPU or have one each; lazy updates; a loss scale; a GPU and CPUs in turn. Runs like gpu_test.py."""
import random
import re
import unittest

from gpu_run import EMULATED, GpuRunTest
from lockstep_run import checkpoints, main, records, wait_until

ROWS = 300
# 37 samples: an epoch's last batch has 4 for 4 microshards of up to 3.
CONFIG = """
seed: 3
data: {{format: csv, path: {path}, label_column: -1}}
model:
  layers:
{layers}
{loss}
optimizer: {{{optimizer}}}
comm: {{sparse_below: 0.5}}
train: {{batch_size: 11, epochs: 50}}
"""
PAIRS = """
    - slice: {name: center, inputs: [features], begin: [0], size: [6]}
    - slice: {name: context, inputs: [features], begin: [6], size: [1]}
"""
WORDS = """
    - embedding: {{name: words, inputs: [{ids}], rows: {rows}, units: {units}, padding_index: 0, initializer: {{normal: {{}}}}}}
    - flatten: {{name: flat}}
"""


def pairs(units, layer):
    return PAIRS + WORDS.format(rows=ROWS, units=units, ids="center") + "    - " + layer, "  loss: mean"


# The table's rows have whole packs of four numbers, or not. In the last model every variable is a sparse table.
MODELS = {
    "dense": (WORDS.format(rows=ROWS, units=5, ids="features") + "    - dense: {name: top, inputs: [flat], units: 3}", ""),
    "nce": pairs(4, f"nce: {{name: top, inputs: [flat, context], classes: {ROWS}, sampled: 16}}"),
    "softmax": pairs(3, f"sampled_softmax: {{name: top, inputs: [flat, context], classes: {ROWS}, sampled: 9}}"),
    "tables": pairs(4, f"negative_sampling: {{name: top, inputs: [flat, context], classes: {ROWS}, negatives: 3}}")}
GRADIENT_DESCENT = "gradient_descent: {learning_rate: 0.2}"
MOMENTUM = "momentum: {learning_rate: 0.05, nesterov: true%s}"
ADAM = "adam: {learning_rate: 0.01%s}"
LAZY = ", lazy: true"
# Ranks and GPUs: those that share one exchange through the host, those with one each have NCCL, too.
GROUPS = ((1, 1), (2, 1), (4, 1), *(((3, 4),) if EMULATED else ()))


class GpuSparseTest(GpuRunTest):
    def setUp(self):
        super().setUp()
        numbers = random.Random(5)
        lines = [",".join(str(int(numbers.paretovariate(0.6)) % ROWS) for _ in range(7)) + f",{numbers.randrange(3)}"
                 for _ in range(37)]
        (self.folder / "words.csv").write_text("\n".join(lines) + "\n")

    def config(self, model, optimizer):
        path = self.folder / f"{model}-{len(list(self.folder.glob('*.yaml')))}.yaml"
        layers, loss = MODELS[model]
        path.write_text(CONFIG.format(path=self.folder / "words.csv", layers=layers, loss=loss, optimizer=optimizer))
        return path

    def train_groups(self, name, config, expected=None, groups=GROUPS, **options):
        """Runs of all groups, whose bits are those of the first, or of the run `expected`."""
        for ranks, gpus in groups:
            self.on_gpu(f"{name}{ranks}", ranks=ranks, gpus=gpus, config=config, **options)
            self.assert_same_run(expected or f"{name}{groups[0][0]}", f"{name}{ranks}", f"{name}, {ranks} ranks")

    def test_sparse_gradients_have_the_bits_of_dense_ones(self):
        for model, optimizer in (("dense", ADAM % ""), ("nce", MOMENTUM % ""), ("softmax", GRADIENT_DESCENT),
                                 ("tables", ADAM % "")):
            config = self.config(model, optimizer)
            words = ("--set", "device=cuda", "--set", "shards=4")
            self.assertRegex(self.lockstep("check", config, *words).out,
                             r"sparse gradient +words/embeddings: at most (66|77) of 300")
            self.assertNotIn("sparse gradient", self.lockstep("check", config, *words, "--set", "comm.sparse_below=0").out)
            self.on_gpu(f"{model}-dense", config=config, sets=["comm.sparse_below=0"])
            self.train_groups(f"{model}-sparse", config, f"{model}-dense")

    def test_lazy_updates_same_bits_and_unlike_eager(self):
        for model, optimizer in (("nce", ADAM), ("dense", MOMENTUM)):
            self.on_gpu(f"{model}-eager", config=self.config(model, optimizer % ""))
            self.train_groups(f"{model}-lazy", self.config(model, optimizer % LAZY))
            self.assertNotEqual(self.digest(f"{model}-eager"), self.digest(f"{model}-lazy1"))
            losses = [[record["loss"] for record in records(self.folder / f"{model}-{how}")] for how in ("eager", "lazy1")]
            self.assertEqual(losses[0][0], losses[1][0])

    def test_several_subtrees_and_empty_microshards(self):
        # 7 shards on 2 and 3 ranks; an epoch's last batch has 4 samples.
        config = self.config("nce", ADAM % LAZY)
        self.train_groups("uneven", config, sets=["shards=7"], groups=((1, 1), (2, 1), *(((3, 4),) if EMULATED else ())))
        config = self.config("nce", ADAM % "")
        self.on_gpu("dense", config=config, sets=["shards=7", "comm.sparse_below=0"])
        self.on_gpu("sparse", config=config, sets=["shards=7"], ranks=2)
        self.assert_same_run("dense", "sparse")

    def test_lazy_updates_come_close_to_the_cpus(self):
        config = self.config("nce", ADAM % LAZY)
        for device in ("cuda", "cpu"):
            self.on_gpu(device, config=config, device=device)
        gpu, cpu = ([record["loss"] for record in records(self.folder / device)] for device in ("cuda", "cpu"))
        self.assertEqual(len(gpu), self.STEPS)
        for one, two in zip(gpu, cpu):
            self.assertAlmostEqual(one, two, delta=1e-4 * abs(two))

    @unittest.skipUnless(EMULATED, "the order of streams is emulated")
    def test_same_bits_for_late_and_early_streams(self):
        config = self.config("nce", ADAM % LAZY)
        self.on_gpu("late", config=config)
        self.train_groups("early", config, "late", LOCKSTEP_EMULATED_RUN_AHEAD="1")

    def test_loss_scale_of_rows_and_their_overflow(self):
        # It doubles after each step, until what flows back to the tables overflows; there are no other gradients.
        sets = ["precision.compute=float16", "precision.loss_scale_growth_steps=1"]
        config = self.config("tables", ADAM % "")
        self.on_gpu("dense", config=config, sets=[*sets, "comm.sparse_below=0"], steps=10)
        self.train_groups("sparse", config, "dense", sets=sets, steps=10)
        scales = [record["loss_scale"] for record in records(self.folder / "sparse1")]
        self.assertTrue(any(a > b for a, b in zip(scales, scales[1:])), scales)
        self.train_groups("lazy", self.config("dense", ADAM % LAZY), sets=sets, steps=10, groups=((1, 1), (2, 1)))

    def test_clipped_rows_have_the_bits_of_dense_ones(self):
        for kind, limit in (("clip_global_norm", 0.05), ("clip_norm", 0.05), ("clip_value", 0.01)):
            config = self.config("nce", ADAM % "")
            sets = [f"gradients.{kind}={limit}", "gradients.record_norm=true"]
            self.on_gpu(f"{kind}-dense", config=config, sets=[*sets, "comm.sparse_below=0"])
            self.train_groups(f"{kind}-sparse", config, f"{kind}-dense", sets=sets, groups=GROUPS[::2])
            shares = [record.get("clipped", 1) for record in records(self.folder / f"{kind}-dense")]
            self.assertGreater(max(shares), 0)

    def test_resumed_run_has_the_same_bits_in_either_form(self):
        config = self.config("nce", MOMENTUM % "")
        self.on_gpu("whole", config=config, steps=9)
        self.on_gpu("parts", config=config, steps=3, ranks=2)
        self.on_gpu("parts", config=config, steps=6, sets=["comm.sparse_below=0"])
        self.on_gpu("parts", config=config, steps=9, ranks=4)
        self.assertEqual(self.digest("whole"), self.digest("parts"))

    def test_lazy_run_continues_on_cpu_and_back_on_gpu(self):
        config = self.config("nce", ADAM % LAZY)
        arguments = self.train_arguments("run", config=config, steps=100000, threads=None, sets=[
            "device=cuda", "shards=4", "train.epochs=100000", "checkpoint.every_steps=2"])
        job = self.start(*arguments, ranks=2)
        wait_until(lambda: checkpoints(self.folder / "run"), 120, "a checkpoint")
        job.kill()
        reached = self.header(checkpoints(self.folder / "run")[-1])["global_step"]
        self.assertGreater(reached, 0)
        sets = ["train.epochs=100000"]
        cpu = self.on_gpu("run", config=config, steps=reached + 3, device="cpu", ranks=2, sets=sets, more=["--accept-changes"])
        self.assertIn(f"continuing at step {reached}", cpu.err)
        back = self.on_gpu("run", config=config, steps=reached + 5, sets=sets, more=["--accept-changes"])
        self.assertIn(f"continuing at step {reached + 3}", back.err)

    def test_recorded_step_repeats_on_other_ranks(self):
        self.on_gpu("run", config=self.config("nce", ADAM % LAZY), steps=4, ranks=2, more=("--record", 3))
        result = self.lockstep("replay", self.folder / "run", "--step", 3, "--quiet", ranks=3)
        self.assertIn("repeated on 3 ranks: equal, layer by layer", result.out)
        record = next((self.folder / "run").rglob("*3*.json")).read_text()
        self.assertIn("gradient of words/embeddings", record)

    def test_check_predicts_the_memory_of_training(self):
        config = self.config("nce", ADAM % LAZY)
        words = [word for one in ("device=cuda", "shards=4") for word in ("--set", one)]
        predicted = re.search(r"GPU memory +([\d.]+) MB", self.lockstep("check", config, *words).out)
        result = self.on_gpu("run", config=config, steps=2)
        taken = re.search(r"GPU memory: at most ([\d.]+) MB", result.err)
        self.assertTrue(predicted and taken, str(result))
        self.assertLessEqual(float(predicted[1]), float(taken[1]))
        self.assertGreater(float(predicted[1]), 0.8 * float(taken[1]))


if __name__ == "__main__":
    main()
