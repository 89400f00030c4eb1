# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Built-in nets, small ones: they train, resume and are checked; what blocks stand for is printed."""
from lockstep_run import DIGITS, LockstepTest, main, records

IDS = ["data.shape=[64]", "data.scale=1", "train.batch_size=16"]
SMALL = {
    "mlp": ["model.layers=[mlp: {classes: 10, units: 16}]"],
    "lenet": ["model.layers=[upsample: {factor: 4}, lenet]", "train.batch_size=16"],
    "resnet20": ["model.layers=[resnet20: {filters: 4}]", "train.batch_size=16"],
    "resnet18": ["model.layers=[upsample: {factor: 4}, resnet18: {classes: 10, filters: 4}]", "train.batch_size=16"],
    "resnet34": ["model.layers=[upsample: {factor: 4}, resnet34: {classes: 10, filters: 4}]", "train.batch_size=16"],
    "resnet50": ["model.layers=[upsample: {factor: 4}, resnet50: {classes: 10, filters: 4}]", "train.batch_size=16"],
    "unet": ["model.layers=[unet: {classes: 2, filters: 4, levels: 2}]", "model.loss=mean", "train.batch_size=16"],
    "cosmoflow": ["data.shape=[4, 4, 4, 1]", "model.layers=[cosmoflow: {targets: 10, filters: 4, depth: 2}]",
                  "train.batch_size=16"],
    "lstm_net": [*IDS, "model.layers=[lstm_net: {rows: 17, classes: 10, units: 8}]"],
    "gpt2": [*IDS, "model.layers=[gpt2: {rows: 17, units: 16, heads: 2, layers: 2}]", "model.loss=mean"],
}


class NetsTest(LockstepTest):
    def test_every_net_trains(self):
        for net, sets in SMALL.items():
            with self.subTest(net):
                self.train(net, steps=3, sets=sets)
                losses = [record["loss"] for record in records(self.folder / net)]
                self.assertEqual(len(losses), 3)
                self.assertEqual([loss for loss in losses if not abs(loss) < 1e6], [])

    def test_same_bits_and_resume(self):
        sets = SMALL["resnet20"]
        self.train("one", steps=4, sets=sets)
        self.train("three", steps=2, sets=sets, ranks=3)
        self.train("three", steps=4, sets=sets, ranks=3, threads=2)
        self.assert_same_run("one", "three")

    def test_expansion_is_printed_and_can_be_used(self):
        result = self.lockstep("check", DIGITS, "--expand", "--set", "model.layers=[resnet20]")
        self.assertIn("name: resnet20/larger/2/rest/2/block/conv1", result.out)
        expanded = result.out
        config = self.folder / "expanded.yaml"
        text = DIGITS.read_text().replace("../data/", f"{DIGITS.parent.parent}/data/")
        begin, end = text.index("  layers:"), text.index("  loss:")
        config.write_text(text[:begin] + "  layers:\n" + "".join(f"    {line}\n" for line in expanded.splitlines())
                          + text[end:])
        self.train("block", steps=1, sets=["model.layers=[resnet20]"])
        self.train("layers", config=config, steps=1)
        self.assert_same_run("block", "layers")

    def test_mistakes_have_a_place(self):
        result = self.lockstep("check", DIGITS, "--set", "model.layers=[resnet20: {clases: 3}]", code=2)
        self.assert_one_error(result, 2, "(?s)block resnet20: unknown parameter 'clases'.*Did you mean 'classes'")


if __name__ == "__main__":
    main()
