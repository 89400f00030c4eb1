# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""A story: folders of pictures, and weights from PyTorch. First a new last layer, then all layers, as docs/fine_tuning.md has it; both compared with what
PyTorch reached with the same weights and pictures (reference/fine_tuned.py)."""
import json
import statistics

import digit_pictures
from lockstep_run import main
from story import REFERENCE, Story

HEAD = """
seed: 1
shards: 4
data:
  format: images
  path: digits
  size: 32
  scale: 0.00392156862745098       # 1/255, then the mean and std that the net was trained with
  mean: [0.485, 0.456, 0.406]
  std: [0.229, 0.224, 0.225]
  eval: {path: test}
model:
  layers: [resnet18: {classes: 10, filters: 4}]
  loss: softmax_cross_entropy
  frozen: ["re:(?!resnet18/logits).*"]
warm_start:
  checkpoint: resnet18.h5
  variables: ["re:(?!resnet18/logits).*"]
optimizer: {adam: {learning_rate: 0.01}}
train: {batch_size: 16, epochs: 15}
eval: {every_epochs: 5, metrics: [accuracy]}
"""
ALL = """
include: head.yaml
model: {frozen: []}
warm_start: {checkpoint: runs/head, variables: ["*"]}
optimizer: {adam: {learning_rate: 0.001}}
train: {epochs: 5}
"""


class Images(Story):
    def test_a_net_of_pytorch_learns_coloured_digits(self):
        digit_pictures.write_pictures(self.home / "digits", digit_pictures.TRAINING)
        digit_pictures.write_pictures(self.home / "test", digit_pictures.TEST)
        digit_pictures.write_pictures(self.elsewhere / "new", range(1700, 1760))
        (self.home / "resnet18.safetensors").write_bytes((REFERENCE / "digits_resnet18.safetensors").read_bytes())
        (self.home / "head.yaml").write_text(HEAD, encoding="utf-8")
        (self.home / "all.yaml").write_text(ALL, encoding="utf-8")

        said = self.sh('lockstep import resnet18.safetensors --like head.yaml --map torchvision --variables "re:(?!resnet18/logits).*" '
                       "--output resnet18.h5").out
        self.assertIn("100 tensors written to resnet18.h5\nnot used: fc.", said)
        self.sh("lockstep check head.yaml")
        self.assertIn("100 variables taken", self.sh("lockstep train head.yaml --run-dir runs/head").err)
        head = self.judged("lockstep evaluate runs/head")
        self.assertIn("102 variables taken", self.sh("lockstep train all.yaml --run-dir runs/all --steps 25").err)
        self.sh("mpirun -n 2 lockstep train all.yaml --run-dir runs/all")
        every = self.judged("mpirun -n 2 lockstep evaluate runs/all")

        self.sh("lockstep report runs/all")
        self.looks_like_a_report(self.home / "runs/all/report.html", "accuracy", "resnet18", "seven")
        self.sh("lockstep predict runs/all --set-name eval --sample-names --output evaluated.csv")
        rows = self.table(self.home / "evaluated.csv")
        right = sum(row["class_name"] == row["label_name"] for row in rows) / len(rows)
        self.assertAlmostEqual(right, every["accuracy"], delta=1e-9)
        self.assertTrue(all(f"/{row['label_name']}/" in row["sample_name"] for row in rows), rows[0])

        self.take_elsewhere("runs/all")
        self.sh("lockstep predict models/all --input new --sample-names --output new.csv", at=self.elsewhere)
        rows = self.table(self.elsewhere / "new.csv")
        new = sum(f"/{row['class_name']}/" in f"/{row['sample_name']}" for row in rows) / len(rows)
        judged = self.judged(f"lockstep evaluate models/all --set data.eval.path={self.elsewhere}/new", at=self.elsewhere)
        self.sh("lockstep export models/all --output digits.safetensors --layout pytorch", at=self.elsewhere)

        torch = json.loads((REFERENCE / "fine_tuned.json").read_text(encoding="utf-8"))
        print(f"accuracy of the last layer {head['accuracy']:.3f}, of all layers {right:.3f}, on new pictures {new:.3f}")
        self.assertAlmostEqual(new, judged["accuracy"], delta=1e-9)
        self.assertGreater(new, right - 0.1)
        for name, ours in (("head", head), ("all", every)):
            accuracies, losses = [one["accuracy"] for one in torch[name]], [one["loss"] for one in torch[name]]
            with self.subTest(name):
                self.assertEqual(ours["samples"], len(digit_pictures.TEST))
                self.assertTrue(min(accuracies) - 0.02 <= ours["accuracy"] <= max(accuracies) + 0.02, f"{ours}, and PyTorch {accuracies}")
                self.assertLess(abs(ours["loss"] - statistics.mean(losses)), 3 * statistics.stdev(losses), f"{ours}, and PyTorch {losses}")
        self.assertGreater(every["accuracy"], max(one["accuracy"] for one in torch["without_pretraining"]))


if __name__ == "__main__":
    main()
