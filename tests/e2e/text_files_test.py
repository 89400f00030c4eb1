# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""The reader text_files: folders of texts from training to predictions, with the bits of the same texts as lines of a table."""
import csv
import json

from lockstep_run import LockstepTest, main

CONFIG = """\
seed: 1
shards: 4
data:
%s
  max_length: 4
model:
  layers:
    - embedding: {name: words, rows: 8, units: 3}
    - flatten
    - dense: {units: 2}
optimizer: {adam: {learning_rate: 0.05}}
train: {batch_size: 8, steps: 30}
"""
FILES = "  format: text_files\n  path: mail/train\n  eval: {path: mail/test}"
LINES = "  format: text_tsv\n  path: mail.tsv\n  split_column: 0\n  label_column: 1\n  text_column: 2\n  vocabulary_split: train\n  train: {split: train}\n  eval: {split: test}"
TEXTS = {"train": [("ham", "see you soon"), ("ham", "you see")] * 10 + [("spam", "buy now"), ("spam", "buy pills now")] * 10,
         "test": [("ham", "see this"), ("spam", "buy this now")]}


class TextFilesTest(LockstepTest):
    def test_folders_have_the_bits_of_a_table_of_the_same_texts(self):
        lines = []
        for split, texts in TEXTS.items():
            for number, (name, text) in enumerate(texts):
                folder = self.folder / "mail" / split / name
                folder.mkdir(parents=True, exist_ok=True)
                (folder / f"{number:03}.txt").write_text(text)
                lines.append(f"{split}\t{name}\t{text}\n")
        (self.folder / "mail.tsv").write_text("".join(lines))
        for run, section, ranks in (("files", FILES, 3), ("lines", LINES, None)):
            (self.folder / f"{run}.yaml").write_text(CONFIG % section)
            self.train(run, config=self.folder / f"{run}.yaml", ranks=ranks)
        self.assert_same_run("lines", "files")
        run = self.folder / "files"
        self.assertEqual((run / "vocabulary.txt").read_text(), (self.folder / "lines" / "vocabulary.txt").read_text())
        self.assertEqual((run / "classes.txt").read_text().split(), ["ham", "spam"])
        self.assertEqual(json.loads(self.lockstep("evaluate", run).out)["samples"], 2)
        out = self.folder / "out.csv"
        self.lockstep("predict", run, "--input", self.folder / "mail" / "test", "--output", out)
        with open(out, newline="") as file:
            self.assertEqual([row["class_name"] for row in csv.DictReader(file)], ["ham", "spam"])


if __name__ == "__main__":
    main()
