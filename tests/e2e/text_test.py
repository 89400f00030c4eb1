# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""From a text file to a model: vocabularies of runs, prediction of lines, neighbours, sampling."""
import csv
import json

from lockstep_run import LockstepTest, main, records

TSV = """\
seed: 1
shards: 4
data:
  format: text_tsv
  path: mail.tsv
  split_column: 0
  label_column: 1
  text_column: 2
  vocabulary_split: train
  max_length: 4
  train: {split: train}
  eval: {split: test}
model:
  layers:
    - embedding: {name: words, rows: 8, units: 3}
    - flatten
    - dense: {units: 2}
optimizer: {adam: {learning_rate: 0.05}}
train: {batch_size: 8, steps: 40}
"""

WINDOWS = """\
seed: 1
shards: 4
data:
  format: text_windows
  path: song.txt
  tokens: characters
  length: 8
  train: {part: [0, 0.8], stride: 3}
  eval: {part: [0.8, 1]}
model:
  layers:
    - embedding: {rows: 6, units: 16}
    - dense: {units: 32}
    - relu
    - dense: {units: 6}
  loss: softmax_cross_entropy
optimizer: {adam: {learning_rate: 0.05}}
train: {batch_size: 16, steps: 60}
"""


class TextTest(LockstepTest):
    def classifier(self, **changes):
        lines = ["train\tham\tsee you soon", "train\tspam\tbuy now", "train\tspam\tbuy pills now", "train\tham\tyou see"]
        text = "\n".join(lines * 10 + ["test\tspam\tbuy this now", "test\tham\tsee this"]) + "\n"
        (self.folder / "mail.tsv").write_text(changes.get("text", text), encoding="utf-8")
        (self.folder / "mail.yaml").write_text(TSV, encoding="utf-8")
        return self.folder / "mail.yaml"

    def language_model(self):
        (self.folder / "song.txt").write_text("abcd\n" * 100, encoding="utf-8")
        (self.folder / "song.yaml").write_text(WINDOWS, encoding="utf-8")
        return self.folder / "song.yaml"

    def test_text_classifier_learns_and_predicts_lines(self):
        config = self.classifier()
        for ranks in (1, 2, 3):
            self.train(f"run-{ranks}", ranks=ranks, config=config)
            self.assert_same_run("run-1", f"run-{ranks}")
        run = self.folder / "run-1"
        self.assertEqual((run / "vocabulary.txt").read_text(encoding="utf-8"),
                         "<pad>\t0\n<unk>\t0\nbuy\t20\nnow\t20\nsee\t20\nyou\t20\npills\t10\nsoon\t10\n")
        self.assertEqual((run / "classes.txt").read_text(encoding="utf-8"), "ham\nspam\n")
        self.assertEqual(json.loads(self.lockstep("evaluate", run).out)["accuracy"], 1)
        (self.folder / "new.txt").write_text("buy pills\nsee you\n", encoding="utf-8")
        self.lockstep("predict", run, "--input", self.folder / "new.txt", "--output", self.folder / "out.csv")
        with (self.folder / "out.csv").open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([(row["class"], row["class_name"]) for row in rows], [("1", "spam"), ("0", "ham")])
        self.assertEqual(list(rows[0]), ["class", "class_name", "probability_ham", "probability_spam"])

    def test_a_run_keeps_to_its_vocabulary(self):
        config = self.classifier()
        self.train("run", config=config, steps=4)
        other = ["--set", "data.min_count=11"]
        for command in (["evaluate", self.folder / "run"],
                        ["predict", self.folder / "run", "--input", self.folder / "mail.tsv", "--output",
                         self.folder / "out.csv"]):
            self.assert_one_error(self.lockstep(*command, *other, code=2), 2,
                                  "data.min_count has no effect: the words are those of the checkpoint")
        text = "train\tham\tsee you\ntrain\tspam\tbuy\ntest\tspam\tbuy\n" * 8
        self.classifier(text=text)
        arguments = self.train_arguments("run", config=config, steps=8)
        self.assert_one_error(self.lockstep(*arguments, ranks=2, code=2), 2, "the training and evaluation data changed")
        result = self.lockstep(*arguments, "--accept-changes", ranks=2, code=3)
        self.assert_one_error(result, 3, r"vocabulary.txt, line 3: .*'buy\\t8' where the run has 'buy\\t20'")

    def test_neighbours_are_words_that_are_used_alike(self):
        self.train("run", config=self.classifier())
        run = self.folder / "run"
        out = self.lockstep("neighbours", run, "--words", "buy,you", "--count", 2).out
        self.assertRegex(out, r"^buy \(20 times\)\n +-?\d\.\d{4}  \w+\n +-?\d\.\d{4}  \w+\n\nyou \(20 times\)\n")
        found = json.loads(self.lockstep("neighbours", run, "--words", "buy", "--count", 5, "--json").out)
        self.assertEqual(found["variable"], "words/embeddings")
        cosines = [word["cosine"] for word in found["neighbours"]["buy"]]
        self.assertEqual(cosines, sorted(cosines, reverse=True))
        self.assertEqual({word["word"] for word in found["neighbours"]["buy"]}, {"now", "see", "you", "pills", "soon"})
        self.assert_one_error(self.lockstep("neighbours", run, "--words", "pill", code=2), 2, "Did you mean 'pills'")
        self.assert_one_error(self.lockstep("neighbours", run, "--words", "buy", "--variable", "dense1/kernel", code=2),
                              2, "12x2 of float32, but the vocabulary has 8 words")

    def test_vocabulary_writes_what_a_run_keeps(self):
        config = self.classifier()
        self.train("run", config=config, steps=1)
        self.lockstep("vocabulary", config, "--output", self.folder / "words.txt")
        self.assertEqual((self.folder / "words.txt").read_bytes(), (self.folder / "run" / "vocabulary.txt").read_bytes())

    def test_a_language_model_goes_on_with_a_text(self):
        config = self.language_model()
        for ranks in (1, 3):
            self.train(f"run-{ranks}", ranks=ranks, config=config)
            self.assert_same_run("run-1", f"run-{ranks}")
        self.assertLess(records(self.folder / "run-1")[-1]["loss"], 0.1)
        run = self.folder / "run-1"

        def sample(*options, prompt="ab", code=0):
            return self.lockstep("predict", run, "--prompt", prompt, *options, code=code)

        self.assertEqual(sample("--length", 12, "--temperature", 0).out, "abcd\nabcd\nabcd\n")
        # Longer than a window of 8.
        self.assertEqual(sample("--length", 3, "--temperature", 0, prompt="abcd\nabcd\nab").out, "abcd\nabcd\nabcd\n\n")
        hot = [sample("--length", 40, "--temperature", 100, "--seed", seed).out for seed in (1, 1, 2)]
        self.assertEqual(hot[0], hot[1])
        self.assertNotEqual(hot[0], hot[2])
        self.assertNotIn("<unk>", hot[0])
        self.assertEqual(sample("--length", 40, "--temperature", 100, "--top-k", 1).out,
                         sample("--length", 40, "--temperature", 0).out)
        self.assertEqual(sample("--length", 40, "--temperature", 100, "--top-p", 0.001).out,
                         sample("--length", 40, "--temperature", 0).out)
        self.assert_one_error(sample(prompt="xyz", code=2), 2, "the character 'x' is not in the vocabulary")
        self.assert_one_error(sample(prompt="", code=2), 2, "holds no token")

    def test_a_last_layer_with_the_table_of_the_embedding(self):
        config = self.language_model()
        untied = ["    - embedding: {rows: 6, units: 16}", "    - dense: {units: 32}", "    - dense: {units: 6}"]
        tied = ["    - embedding: {name: tokens, rows: 6, units: 16}", "    - dense: {units: 16}",
                "    - tied_dense: {units: 6, shared_with: tokens}"]
        text = config.read_text(encoding="utf-8")
        for before, after in zip(untied, tied):
            text = text.replace(before, after)
        config.write_text(text, encoding="utf-8")
        for ranks, threads in ((1, 1), (3, 1), (2, 2), (4, 1)):
            self.train(f"run-{ranks}", ranks=ranks, threads=threads, config=config)
            self.assert_same_run("run-1", f"run-{ranks}")
        self.assertLess(records(self.folder / "run-1")[-1]["loss"], 0.2)
        variables = self.lockstep("inspect", self.folder / "run-1").out
        self.assertRegex(variables, r"variables/tokens/embeddings +float32 +6x16")
        self.assertNotIn("tied_dense", variables)
        self.lockstep("predict", self.folder / "run-1", "--prompt", "ab", "--length", 12, "--temperature", 0)

    def test_other_models_do_not_go_on_with_a_text(self):
        self.train("run", config=self.classifier(), steps=1)
        self.assert_one_error(self.lockstep("predict", self.folder / "run", "--prompt", "buy", code=2), 2,
                              "the run is no language model")


if __name__ == "__main__":
    main()
