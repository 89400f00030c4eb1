# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""eval.metrics: the same values, bit for bit, on any number of ranks and threads; where they go, and mistakes."""
import csv
import gzip
import json
import math

from lockstep_run import DIGITS, DIGITS_DATA, LockstepTest, checkpoints, main, records

FIRST, LAST = 1500, 1797  # the rows that examples/digits.yaml holds out
METRICS = ("[accuracy, {top_k: {k: 3}}, {f1: {average: per_class}}, confusion_matrix, mean_iou, perplexity, auc_roc, "
           "{auc_roc: {name: exact_auc, exact: true}}, {auc_pr: {exact: true, average: micro}}, "
           "{recall_at_k: {k: 2}}, {mean: {name: hidden, layer: global_avg_pool1}}, "
           "{f1: {name: as_labels, predictions: sigmoid, thresholds: best_f1}}]")
# The last one has no labels in columns: it is refused, and left out of what is run.
RUN_METRICS = METRICS[:METRICS.rindex(", {f1: {name: as_labels")] + "]"


def scores_of(predictions):
    return [[float(row[f"probability_{c}"]) for c in range(10)] for row in predictions]


def rank_statistic(scores, truth):
    """The share of pairs in which the positive has the higher score; ties count half."""
    positive = [s for s, t in zip(scores, truth) if t]
    negative = [s for s, t in zip(scores, truth) if not t]
    won = sum((p > n) + 0.5 * (p == n) for p in positive for n in negative)
    return won / (len(positive) * len(negative))


class MetricsTest(LockstepTest):
    def train_with_metrics(self, run_dir, metrics=RUN_METRICS, sets=(), **options):
        return self.train(run_dir, sets=[f"eval.metrics={metrics}", "eval.batch_size=50", *sets], **options)

    def evaluate(self, run_dir, *arguments, **options):
        return json.loads(self.lockstep("evaluate", self.folder / run_dir, *arguments, **options).out)

    def test_same_metrics_on_any_ranks_and_threads(self):
        self.train_with_metrics("run", ranks=2, steps=30,
                                sets=["eval.every_steps=15", "checkpoint.background=false"])
        texts = {}
        for ranks, threads in ((None, 1), (1, 2), (2, 1), (2, 2), (3, 1), (4, 1)):
            texts[ranks, threads] = self.lockstep("evaluate", self.folder / "run", "--set", f"threads={threads}",
                                                  ranks=ranks).out
        self.assertEqual(len(set(texts.values())), 1, texts)
        found = json.loads(texts[3, 1])
        recorded = records(self.folder / "run", "eval")[-1]
        self.assertEqual(recorded["step"], 30)
        for name in ("accuracy", "top_k", "f1", "f1/per_class", "confusion_matrix/matrix", "mean_iou", "perplexity",
                     "auc_roc", "exact_auc", "auc_pr", "recall_at_k", "hidden"):
            self.assertEqual(found[name], recorded[name], name)
        events = self.lockstep("events", self.folder / "run" / "eval").out
        for name in ("top_k", "f1", "mean_iou", "exact_auc"):
            self.assertIn(name, events)
        self.assertNotIn("confusion_matrix", events, "it is no scalar")

    def test_the_values_are_those_of_the_predictions(self):
        self.train_with_metrics("run", ranks=1, steps=30)
        with gzip.open(DIGITS_DATA, "rt", encoding="ascii") as file:
            rows = file.read().splitlines()[FIRST:LAST]
        inputs, output = self.folder / "held-out.csv", self.folder / "predictions.csv"
        inputs.write_text("\n".join(rows) + "\n", encoding="ascii")
        self.lockstep("predict", self.folder / "run", "--input", inputs, "--output", output)
        with output.open(newline="", encoding="ascii") as file:
            predictions = list(csv.DictReader(file))
        truth = [int(row.rpartition(",")[2]) for row in rows]
        predicted = [int(row["class"]) for row in predictions]
        scores = scores_of(predictions)
        found = self.evaluate("run", ranks=2)
        matrix = [[sum(t == a and p == b for t, p in zip(truth, predicted)) for b in range(10)] for a in range(10)]
        self.assertEqual(found["confusion_matrix/matrix"], matrix)
        self.assertEqual(found["accuracy"], sum(matrix[c][c] for c in range(10)) / len(rows))
        self.assertGreater(found["accuracy"], 0.5, "a net that learned nothing shows nothing")
        for c in range(10):
            row, column = sum(matrix[c]), sum(matrix[a][c] for a in range(10))
            self.assertAlmostEqual(found["f1/per_class"][c], 2 * matrix[c][c] / (row + column), places=12)
        in_three = sum(sum(s > row[t] for s in row) < 3 for row, t in zip(scores, truth))
        self.assertEqual(found["top_k"], in_three / len(rows))
        areas = [rank_statistic([row[c] for row in scores], [t == c for t in truth]) for c in range(10)]
        self.assertAlmostEqual(found["exact_auc"], sum(areas) / 10, places=12)
        loss = -sum(math.log(row[t]) for row, t in zip(scores, truth)) / len(rows)
        self.assertAlmostEqual(found["perplexity"], math.exp(loss), places=4)
        self.assertAlmostEqual(found["perplexity"], math.exp(found["loss"]), places=5)

    def test_each_head_has_its_own_metrics(self):
        config = self.folder / "heads.yaml"
        table = [[int(d % 2 == 0), int(d > 4), int(d in (0, 4, 6, 8, 9))] for d in range(10)]
        text = DIGITS.read_text(encoding="utf-8").replace("../data/digits.csv.gz", str(DIGITS_DATA))
        for old, new in (("- global_avg_pool", "- global_avg_pool: {name: pool}"),
                         ("    - dense: {name: logits, units: 10}\n", "    - dense: {name: logits, units: 10}\n"
                          "    - dense: {name: tags, units: 3, inputs: pool}\n"),
                         ("  loss: softmax_cross_entropy", "  heads:\n    - {name: digit, output: logits, loss: softmax_cross_"
                          f"entropy}}\n    - {{name: tags, output: tags, loss: sigmoid_cross_entropy, label_table: {table}}}")):
            self.assertIn(old, text)
            text = text.replace(old, new)
        config.write_text(text, encoding="utf-8")
        metrics = ("[{f1: {head: tags, average: per_class}}, {subset_accuracy: {head: tags}}, {hamming_loss: {head: tags}}, "
                   "{accuracy: {head: digit}}, {f1: {head: tags, name: best, thresholds: best_f1, exact: true}}, "
                   "{auc_roc: {head: tags, exact: true}}]")
        self.train_with_metrics("run", metrics, config=config, steps=30, ranks=2)
        texts = [self.lockstep("evaluate", self.folder / "run", ranks=ranks).out for ranks in (1, 3, 4)]
        self.assertEqual(len(set(texts)), 1, texts)
        found = json.loads(texts[0])
        rows = gzip.open(DIGITS_DATA, "rt", encoding="ascii").read().splitlines()[FIRST:LAST]
        inputs, output = self.folder / "held-out.csv", self.folder / "predictions.csv"
        inputs.write_text("\n".join(rows) + "\n", encoding="ascii")
        self.lockstep("predict", self.folder / "run", "--input", inputs, "--output", output)
        with output.open(newline="", encoding="ascii") as file:
            predictions = list(csv.DictReader(file))
        logits = [[float(row[f"tags/logit_{c}"]) for c in range(3)] for row in predictions]
        truth = [table[int(row.rpartition(",")[2])] for row in rows]
        right = [[(x > 0) == bool(t) for x, t in zip(*pair)] for pair in zip(logits, truth)]
        self.assertEqual(found["tags/subset_accuracy"], sum(map(all, right)) / len(rows))
        self.assertAlmostEqual(found["tags/hamming_loss"], 1 - sum(map(sum, right)) / (3 * len(rows)), places=12)
        self.assertEqual(found["digit/accuracy"],
                         sum(int(p["digit/class"]) == int(r.rpartition(",")[2]) for p, r in zip(predictions, rows)) / len(rows))
        areas = [rank_statistic([x[c] for x in logits], [t[c] for t in truth]) for c in range(3)]
        self.assertAlmostEqual(found["tags/auc_roc"], sum(areas) / 3, places=4)
        self.assertEqual(len(found["tags/best/thresholds"]), 3)
        self.assertGreaterEqual(found["tags/best"], found["tags/f1"])
        refused = self.lockstep("check", config, "--set", "eval.metrics=[f1]", code=2)
        self.assert_one_error(refused, 2, "there are several heads")

    def test_counts_do_not_depend_on_the_batch(self):
        self.train_with_metrics("run", ranks=1, steps=20)
        whole = self.evaluate("run", "--set", "eval.batch_size=297")
        for size in (50, 8):
            other = self.evaluate("run", "--set", f"eval.batch_size={size}", ranks=3)
            for name in ("accuracy", "top_k", "f1", "confusion_matrix/matrix", "mean_iou", "recall_at_k"):
                self.assertEqual(other[name], whole[name], f"{name} with {size}")
            self.assertAlmostEqual(other["perplexity"], whole["perplexity"], places=5)

    def test_hooks_and_keep_best_take_any_metric(self):
        sets = ["eval.every_steps=5", "checkpoint.keep_best=1", "checkpoint.best_metric=mean_iou",
                "checkpoint.best_mode=max", "checkpoint.keep=1", "checkpoint.background=false",
                "hooks=[{stop_if_higher: {metric: eval/f1, threshold: 0.5}}]"]
        result = self.train_with_metrics("run", ranks=2, steps=200, sets=sets)
        found = records(self.folder / "run", "eval")
        self.assertGreater(found[-1]["f1"], 0.5)
        self.assertTrue(all(record["f1"] <= 0.5 for record in found[:-1]), found)
        self.assertLess(found[-1]["step"], 200, str(result))
        best = max(found, key=lambda record: record["mean_iou"])["step"]
        self.assertIn(f"step-{best:08}.h5", [path.name for path in checkpoints(self.folder / "run")])

    def test_without_metrics_only_loss_and_accuracy(self):
        self.train("run", ranks=1, steps=5)
        self.assertEqual(set(self.evaluate("run")), {"checkpoint", "global_step", "samples", "loss", "accuracy"})

    def test_mistakes_are_found_before_the_first_step(self):
        for metrics, pattern in (
                ("[acuracy]", r"unknown metric 'acuracy'\n\s+Did you mean 'accuracy'\?"),
                ("[{top_k: {k: 11}}]", "11 of 10 classes"),
                ("[mean_squared_error]", "take 10 labels per sample, but the head has 1 class"),
                ("[{f1: {head: digits}}]", "there is no head 'digits'"),
                ("[{mean: {layer: conv9}}]", "there is no layer 'conv9'\\n\\s+Did you mean"),
                ("[{auc_roc: {exact: true, memory_mb: 0.01}}]", "memory_mb"),
                (METRICS, "metric f1: outputs of 10 take 10 labels per sample")):
            for command in ("train", "check"):
                if command == "train":
                    result = self.train_with_metrics("bad", metrics, ranks=2, steps=5, code=2)
                else:
                    result = self.lockstep("check", DIGITS, "--set", f"eval.metrics={metrics}", code=2)
                self.assert_one_error(result, 2, pattern)
        result = self.train_with_metrics("bad", "[mean_iou]", ranks=2, steps=5, code=2,
                                         sets=["checkpoint.keep_best=1", "checkpoint.best_metric=mean_iuo"])
        self.assert_one_error(result, 2, "no evaluation gives 'mean_iuo'\n\\s+Did you mean 'mean_iou'")


if __name__ == "__main__":
    main()
