# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""One sample with huge finite numbers: its step is bad, although its loss is finite, before it ruins variables, slots or moving
statistics; the message names the sample, whatever train.on_nan says, on any number of ranks."""
import gzip
import math

from lockstep_run import DIGITS_DATA, LockstepTest, main, records

BAD = 40  # in step 3: batches of 16, not shuffled
FILL = "9.96921e36"  # what netCDF writes where nothing was measured
SAMPLE = rf"sample {BAD} \(.*bad\.csv, line {BAD + 1}\)"
NETS = {
    "dense": ["flatten", "dense: {name: hidden, units: 16}", "relu", "dense: {name: logits, units: 10}"],
    "norm": ["conv2d: {name: conv, filters: 4, kernel: 3, bias: false}", "batch_norm: {name: bn}", "relu", "flatten",
             "dense: {name: logits, units: 10}"],
}
CHECKPOINT = "([Tt]he checkpoint of step 2 is intact|no checkpoint is on the disk yet)"  # it is written in the background
BAD_GRADIENT = r"a gradient of step 3 exceeds 9\.2e\+18, too large for an update, although the loss is \d"
BAD_STATISTICS = r"the moving statistics of step 3 are not finite, although its loss is \d"


def write_config(folder, net):
    """A configuration of one of NETS, with the file that has the sample."""
    rows = gzip.open(DIGITS_DATA, "rt").read().splitlines()[:128]
    rows[BAD] = ",".join([FILL] * 64 + rows[BAD].split(",")[-1:])
    (folder / "bad.csv").write_text("\n".join(rows) + "\n")
    path = folder / f"{net}.yaml"
    path.write_text(
        "seed: 1\nshards: 4\n"
        "data: {format: csv, path: bad.csv, shape: [8, 8, 1], label_column: -1, scale: 0.0625, train: {rows: [0, 128]}}\n"
        "model:\n  layers:\n" + "".join(f"    - {item}\n" for item in NETS[net]) + "  loss: softmax_cross_entropy\n"
        "optimizer: {adam: {learning_rate: 0.01}}\n"
        "train: {batch_size: 16, steps: 8, shuffle: false}\n"
        "checkpoint: {every_steps: 2, keep: 0}\n", encoding="utf-8")
    return path


class LargeNumbersTest(LockstepTest):
    def setUp(self):
        super().setUp()
        self.configs = {net: write_config(self.folder, net) for net in NETS}

    def run_it(self, run, net, ranks=1, threads=1, sets=(), code=0):
        return self.train(run, config=self.configs[net], ranks=ranks, threads=threads, sets=list(sets), code=code)

    def assert_finite(self, run):
        for tensor in self.header(self.folder / run)["tensors"]:
            self.assertTrue(all(math.isfinite(tensor[key]) for key in ("min", "max")), tensor)
            self.assertEqual(tensor["nan"], 0, tensor)

    def test_error_names_the_sample(self):
        """With rules that square gradients, and with one that does not."""
        for rule in ("adam", "gradient_descent", "momentum: {momentum: 0.9, learning_rate: 0.01}", "adagrad", "lion"):
            with self.subTest(rule):
                optimizer = f"optimizer={{{rule}}}" if ":" in rule else f"optimizer={{{rule}: {{learning_rate: 0.01}}}}"
                result = self.run_it(rule[:5], "dense", sets=[optimizer], code=1)
                self.assert_one_error(result, 1, BAD_GRADIENT)
                self.assertRegex(result.err, rf"microshard 3 of 4: the features are the first that exceed 9\.2e\+18; {SAMPLE}")
                self.assertRegex(result.err, f"The variables were not updated with them; {CHECKPOINT}")
                self.assertEqual(len(records(self.folder / rule[:5])), 2)

    def test_the_same_on_several_ranks(self):
        for ranks, more in ((2, ()), (3, ()), (3, ("comm.shared_memory=on",)), (2, ("comm.shared_memory=off",)), (3, ("optimizer.shard=true",)), (2, ("comm.reduction=fast",))):
            with self.subTest(ranks=ranks, more=more):
                result = self.run_it(f"run{ranks}{''.join(more)}", "dense", ranks, sets=more, code=1)
                self.assert_one_error(result, 1, BAD_GRADIENT)
                self.assertRegex(result.err, SAMPLE)

    def test_moving_statistics(self):
        """The loss and the gradients are ordinary numbers: the batch is normalised."""
        for ranks in (1, 2, 3):
            result = self.run_it(f"run{ranks}", "norm", ranks, code=1)
            self.assert_one_error(result, 1, BAD_STATISTICS)
            self.assertRegex(result.err, SAMPLE)

    def test_every_action(self):
        for net, pattern in (("dense", BAD_GRADIENT), ("norm", BAD_STATISTICS)):
            for action in ("stop", "skip", "rollback"):
                with self.subTest(net=net, action=action):
                    run = f"{net}-{action}"
                    result = self.run_it(run, net, 2, sets=[f"train.on_nan={action}"])
                    self.assertRegex(result.err, pattern)
                    self.assertRegex(result.err, SAMPLE)
                    self.assert_finite(run)
                    losses = [record["loss"] for record in records(self.folder / run) if record["step"] != 3]
                    self.assertTrue(all(loss is not None and loss < 100 for loss in losses), losses)
                    header = self.header(self.folder / run)
                    self.assertEqual((header["global_step"], 128 * header["epoch"] + header["samples_consumed"]),
                                     {"stop": (3, 48), "skip": (8, 128), "rollback": (8, 144)}[action])
            result = self.run_it(f"{net}-warn", net, sets=["train.on_nan=warn"])
            self.assertRegex(result.err, "warning: " + pattern)

    def test_the_same_bits(self):
        for net in NETS:
            for action in ("skip", "rollback"):
                self.run_it(f"{net}-{action}", net, sets=[f"train.on_nan={action}"])
                for ranks, threads in ((1, 2), (2, 1), (3, 1), (4, 2)):
                    run = f"{net}-{action}-{ranks}-{threads}"
                    self.run_it(run, net, ranks, threads, sets=[f"train.on_nan={action}"])
                    self.assert_same_run(f"{net}-{action}", run)

    def test_clipped_gradients_are_no_bad_step(self):
        """Nothing becomes infinite: the norm is one. Moving statistics do, also then."""
        for clip in ("clip_global_norm", "clip_norm", "clip_average_norm", "clip_value"):
            with self.subTest(clip):
                run = clip
                result = self.run_it(run, "dense", 2, sets=[f"gradients.{clip}=1"])
                self.assertNotIn("step 3", result.err)
                self.assert_finite(run)
        self.assertRegex(self.run_it("norm", "norm", sets=["gradients.clip_global_norm=1"], code=1).err, BAD_STATISTICS)

    def test_gating(self):
        """Variables are updated as their gradients come: then the message says so."""
        for gating in ("op", "none"):
            result = self.run_it(gating, "dense", sets=[f"optimizer.gating={gating}"], code=1)
            self.assert_one_error(result, 1, BAD_GRADIENT)
            self.assertRegex(result.err, rf"The variables were updated with them \(optimizer\.gating: {gating}\), and are not saved; {CHECKPOINT}")
        result = self.run_it("skip", "dense", sets=["optimizer.gating=op", "train.on_nan=skip"])
        self.assertRegex(result.err, SAMPLE)
        self.assert_finite("skip")

        self.assertRegex(result.err, SAMPLE)

    def test_with_servers(self):
        """A step between two meetings is known at the second one, by its own number."""
        for ranks, servers in ((1, 1), (2, 1), (3, 2)):
            with self.subTest(ranks=ranks):
                sets = [f"cluster.ps={servers}", "cluster.meet_every_steps=1"]
                result = self.run_it(f"each{ranks}", "dense", ranks, sets=sets, code=1)
                self.assert_one_error(result, 1, BAD_GRADIENT)
                self.assertRegex(result.err, rf"microshard 3 of 4: the features are the first that exceed 9\.2e\+18; {SAMPLE}")
                self.assertRegex(result.err, f"The variables were not updated with them; {CHECKPOINT}")
                result = self.run_it(f"fourth{ranks}", "dense", ranks, sets=[sets[0], *(f"{key}=4" for key in ("cluster.meet_every_steps", "checkpoint.every_steps", "summary.every_steps"))], code=1)
                self.assert_one_error(result, 1, r"a gradient of step 3 exceeds 9\.2e\+18, too large for an update")
                self.assertRegex(result.err, SAMPLE)
                self.assertRegex(result.err, r"The variables were updated with them \(cluster\.meet_every_steps\), and are not saved")
                self.assertEqual(list((self.folder / f"fourth{ranks}" / "checkpoints").glob("*.h5")), [])
                run = f"skip{ranks}"
                self.assertRegex(self.run_it(run, "dense", ranks, sets=[*sets, "train.on_nan=skip"]).err, SAMPLE)
                self.assert_finite(run)
                self.assertEqual(self.digest(run), self.digest("skip1"))
                self.run_it(f"back{ranks}", "dense", ranks, sets=[*sets, "train.on_nan=rollback"])
                self.assertEqual(self.digest(f"back{ranks}"), self.digest("back1"))

    def test_a_gradient_whose_samples_have_smaller_numbers(self):
        """The place is the gradient of the whole microshard: the sample with the largest feature is named, too."""
        text = (self.folder / "bad.csv").read_text().replace(FILL, "1e13")
        (self.folder / "bad.csv").write_text("".join(f"f{i}," for i in range(64)) + "y\n" + text)
        (self.folder / "values.yaml").write_text(
            "shards: 4\ndata: {format: csv, header: true, path: bad.csv, label_column: null, columns: [\"f*\"], targets: {y: {columns: [y]}}}\n"
            "model: {layers: [{dense: {units: 1}}], loss: mean_squared_error}\noptimizer: {adam: {learning_rate: 0.01}}\n"
            "train: {batch_size: 16, steps: 8, shuffle: false}\n", encoding="utf-8")
        result = self.train("run", config=self.folder / "values.yaml", code=1)
        self.assertRegex(result.err, BAD_GRADIENT)
        self.assertRegex(result.err, rf"the gradient of \S+ is the first that exceeds 9\.2e\+18; samples 40 .*, 43 .*; the largest feature of them, 1e\+13, is that of sample {BAD} ")

    def test_a_healthy_run_is_what_it_was(self):
        for net in NETS:
            result = self.run_it(net, net, sets=["data.train={rows: [48, 112]}"])
            self.assertNotRegex(result.err, "exceeds|not finite")


if __name__ == "__main__":
    main()
