# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""normalize: elements: a mean and a standard deviation of each channel in each grid cell, as NumPy computes them; the same on any ranks,
kept with the run, and undone for targets. Skipped without NumPy."""
import json
import unittest

from lockstep_run import LockstepTest, go_on_with, main, records

HAS_NUMPY = go_on_with("numpy")
if HAS_NUMPY:
    import numpy

CONFIG = """
seed: 3
shards: 4
data:
  format: npy
  scale: 0.5
  offset: -3
  normalize: elements
  inputs:
    now: {features: now.npy}
  targets:
    next: {features: next.npy}
  train: {rows: [0, 90], holdout: 0.2}
  eval: {rows: [90, 120]}
model:
  loss: mean_squared_error
  layers: [flatten, {dense: {units: 16}}, relu, {dense: {units: 96, %s}}]
optimizer: {adam: {learning_rate: 0.01}}
train: {batch_size: 24, epochs: 2}
"""
SHAPE = (6, 8, 2)


@unittest.skipUnless(HAS_NUMPY, "no Python with numpy")
class NormalizeElementsTest(LockstepTest):
    def config(self, last="bias: true"):
        draw = numpy.random.default_rng(5)
        climate = draw.uniform(-40, 40, SHAPE) + 280
        samples = climate + draw.normal(0, 1, (121, *SHAPE)) * draw.uniform(0.1, 9, SHAPE)
        samples[:, 2, 3, 1] = 0.1  # a cell that never changes
        samples[:, :, 7, 0] = 273.15
        self.samples = samples.astype("float32")
        numpy.save(self.folder / "now.npy", self.samples[:120])
        numpy.save(self.folder / "next.npy", self.samples[1:].reshape(120, 96))
        path = self.folder / "climate.yaml"
        path.write_text(CONFIG % last, encoding="utf-8")
        return path

    def test_the_numbers_are_those_of_numpy_on_any_ranks_and_threads(self):
        config = self.config()
        # All 90 rows, without a holdout, so that NumPy can do the same.
        sets = ["data.train={rows: [0, 90]}"]
        result = self.train("one", config=config, sets=sets)
        self.assertRegex(result.err, "normalisation of now: mean and standard deviation of 90 samples, 96 elements")
        self.assertRegex(result.err, r"elements have one value in all samples, and are divided by 1: 7 of 96 elements of now "
                         r"[(]\[0, 7, 0\], \[1, 7, 0\], \[2, 3, 1\], ")
        for name, samples in (("now", self.samples[:90]), ("next", self.samples[1:91].reshape(90, 96))):
            mean, std = numpy.load(self.folder / "one" / f"normalization-{name}.npy")
            scaled = samples * numpy.float32(0.5) + numpy.float32(-3)
            self.assertEqual(mean.shape, scaled.shape[1:])
            numpy.testing.assert_allclose(mean, scaled.mean(0, dtype="float64"), rtol=1e-7, atol=1e-7)
            expected = scaled.std(0, dtype="float64")
            constant = scaled.min(0) == scaled.max(0)
            self.assertEqual(constant.sum(), 7)
            numpy.testing.assert_allclose(std, numpy.where(constant, 1, expected), rtol=1e-6)
            self.assertTrue((std[constant] == 1).all())
        for ranks, threads in ((1, 2), (2, 1), (3, 2), (4, 1)):
            run = f"run-{ranks}-{threads}"
            self.train(run, config=config, ranks=ranks, threads=threads, sets=sets)
            for name in ("now", "next"):
                file = f"normalization-{name}.npy"
                self.assertEqual((self.folder / run / file).read_bytes(), (self.folder / "one" / file).read_bytes())
            self.assert_same_run("one", run)
            self.assertEqual(records(self.folder / run, "eval"), records(self.folder / "one", "eval"))
        result = self.train("stream", config=config, ranks=2, sets=[*sets, "data.memory_gb=0.00003", "data.block_samples=8"])
        self.assertRegex(result.err, "read while they are used")
        self.assertEqual((self.folder / "stream" / "normalization-now.npy").read_bytes(), (self.folder / "one" / "normalization-now.npy").read_bytes())
        # The order of streamed samples is another one; the whole of it is that of one rank.
        self.train("stream-1", config=config, sets=[*sets, "data.memory_gb=0.00003", "data.block_samples=8"])
        self.assert_same_run("stream-1", "stream")

    def test_a_batch_has_what_numpy_computes(self):
        """A net that is linear in each cell, from its outputs for known inputs."""
        config = self.config()
        text = config.read_text(encoding="utf-8").replace("layers: [flatten, {dense: {units: 16}}, relu, {dense: {units: 96, bias: true}}]",
                                                         "layers: [{conv2d: {name: d, filters: 2, kernel: 1}}, flatten]")
        config.write_text(text.replace("  normalize: elements\n", "").replace("{features: now.npy}", "{features: now.npy, normalize: elements}"),
                          encoding="utf-8")
        self.train("run", config=config, steps=1)
        run = self.folder / "run"
        outputs = {}
        for name, samples in (("own", self.samples[100:110]), ("mean", None)):
            mean, std = numpy.load(run / "normalization-now.npy")
            samples = samples if samples is not None else numpy.broadcast_to((mean + 3) / numpy.float32(0.5), (10, *SHAPE)).astype("float32")
            numpy.save(self.folder / f"{name}.npy", samples)
            self.lockstep("predict", run, "--input", f"now={self.folder / name}.npy", "--output", self.folder / f"{name}-out.npy")
            outputs[name] = numpy.load(self.folder / f"{name}-out.npy").reshape(10, *SHAPE)
        # The layer is linear in each cell: out = x @ w + b with the same w and b in each cell.
        x = ((self.samples[100:110] * numpy.float32(0.5) - numpy.float32(3)) - mean) / std
        scale_back = lambda out: out * numpy.float32(0.5) - numpy.float32(3)
        rows, wanted = x.reshape(-1, 2).astype("float64"), scale_back(outputs["own"]).reshape(-1, 2).astype("float64")
        one = numpy.hstack([rows, numpy.ones((len(rows), 1))])
        weights, rest, rank, _ = numpy.linalg.lstsq(one, wanted, rcond=None)
        self.assertEqual(rank, 3)
        numpy.testing.assert_allclose(one @ weights, wanted, atol=2e-4)
        bias = scale_back(outputs["mean"])
        numpy.testing.assert_allclose(bias, numpy.broadcast_to(weights[2], bias.shape), atol=2e-4)

    def test_predictions_are_in_units_of_each_element(self):
        """A net whose outputs are 0 predicts the mean of each element of the target."""
        config = self.config("bias: false, kernel_initializer: zeros")
        self.train("run", config=config, steps=1, sets=["optimizer={gradient_descent: {learning_rate: 1.0e-30}}"])
        run = self.folder / "run"
        mean, std = numpy.load(run / "normalization-next.npy")
        for name in ("now.npy", "next.npy"):  # the checkpoint has what prediction needs
            (self.folder / name).rename(self.folder / f"kept-{name}")
        kept = (run / "normalization-next.npy").read_bytes()
        for name in ("normalization-now.npy", "normalization-next.npy"):
            (run / name).unlink()
        self.lockstep("predict", run, "--input", f"now={self.folder / 'kept-now.npy'}", "--output", self.folder / "out.npy")
        out = numpy.load(self.folder / "out.npy")
        numpy.testing.assert_allclose(out, numpy.broadcast_to((mean.astype("float64") + 3) / 0.5, out.shape), rtol=1e-6)
        self.assertGreater(out.std(1).min(), 10)  # the means differ
        (self.folder / "kept-now.npy").rename(self.folder / "now.npy")
        (self.folder / "kept-next.npy").rename(self.folder / "next.npy")
        # In the units of the data, the mean squared error is that of these means.
        evaluated = json.loads(self.lockstep("evaluate", run, "--set", "eval.metrics=[root_mean_squared_error]").out)
        error = self.samples[91:121].reshape(30, 96) - out[0]
        self.assertAlmostEqual(evaluated["root_mean_squared_error"], float(numpy.sqrt((error.astype("float64") ** 2).mean())), places=3)
        self.train("run", config=config, sets=["optimizer={gradient_descent: {learning_rate: 1.0e-30}}"])  # goes on, and writes the files again
        self.assertEqual((run / "normalization-next.npy").read_bytes(), kept)

    def test_a_run_that_stops_goes_on_with_the_same_bits(self):
        config = self.config()
        self.train("whole", config=config)
        for steps, ranks in ((2, 2), (4, 3), (None, 1)):
            self.train("parts", config=config, steps=steps, ranks=ranks)
        self.assert_same_run("whole", "parts")

    def test_mistakes_are_named(self):
        config = self.config()
        self.train("run", config=config, steps=1)
        run = self.folder / "run"
        numpy.save(self.folder / "other.npy", numpy.zeros((4, 8, 6, 2), "float32"))
        result = self.lockstep("predict", run, "--input", f"now={self.folder / 'other.npy'}", "--output", self.folder / "out.npy", code=3)
        self.assert_one_error(result, 3, "samples")
        (self.folder / "texts.jsonl").write_text("".join(json.dumps({"a": [[1.0], [2.0]], "b": 1.0}) + "\n" for _ in range(8)))
        (self.folder / "sequences.yaml").write_text("data: {format: jsonl, path: texts.jsonl, features: a, labels: b, pad_to: 4, normalize: elements}\n"
                                                    "model: {loss: mean_squared_error, layers: [flatten, {dense: {units: 1}}]}\n"
                                                    "optimizer: {adam: {learning_rate: 0.01}}\ntrain: {batch_size: 4, steps: 1}\n")
        result = self.lockstep("train", self.folder / "sequences.yaml", "--run-dir", self.folder / "none", ranks=2, code=2)
        self.assert_one_error(result, 2, "normalize: elements takes samples of one form")

    def test_lockstep_data_shows_it(self):
        out = self.lockstep("data", self.config()).out
        self.assertRegex(out, r"normalised +by elements: 96, means from -2\.95 to \d+\.?\d*, standard deviations from 0\.\d+ to \d\.\d+; 7 constant")


if __name__ == "__main__":
    main()
