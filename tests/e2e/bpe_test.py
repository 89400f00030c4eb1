# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Byte-level BPE tokenizers from files: the ids and texts of the package `tokenizers`, runs that keep their tokenizer, and files
that are refused.

The comparison with the package is skipped if no Python has it (scripts/test.sh installs it into build/python)."""
import json
import random
import re
import struct
import subprocess

from lockstep_run import SOURCE, LockstepTest, main, python_with, records

END = "<|endoftext|>"

# Reads jobs from standard input: a tokenizer's files, texts; prints the ids of each text, and the texts of each list of ids.
PACKAGE = """
import json, sys
from tokenizers import Tokenizer, models, pre_tokenizers, decoders, AddedToken
job = json.load(sys.stdin)
if job["json"]:
    tokenizer = Tokenizer.from_file(job["json"])
else:
    tokenizer = Tokenizer(models.BPE.from_file(job["vocab"], job["merges"]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|endoftext|>"])
ids = [tokenizer.encode(text).ids for text in job["texts"]]
print(json.dumps({"ids": ids, "texts": [tokenizer.decode(one, skip_special_tokens=False) for one in job["decode"]]}))
"""
# Trains tokenizers of several kinds on a text, and writes their files.
TRAIN = """
import json, sys
from tokenizers import Tokenizer, models, pre_tokenizers, decoders, trainers, processors, AddedToken
corpus, folder = sys.argv[1:]
for name, size, prefix, ignore, added in [("plain", 700, False, False, []), ("prefix", 500, True, False, ["<|user|>", "<|user|>x"]),
                                          ("whole", 900, False, True, [AddedToken("[SEP]", normalized=True), "EP]", "caf\\u00e9 \\u2615"])]:
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=["<|endoftext|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  show_progress=False)
    tokenizer.train([corpus], trainer)
    tokenizer.add_tokens(added)
    tokenizer.save(f"{folder}/{name}.json")
    if name == "plain":
        tokenizer.model.save(folder)
"""

CONFIG = """\
seed: 1
shards: 4
data:
  format: text_windows
  path: song.txt
  tokens: bpe
  vocabulary: tokenizer.json
  length: 8
  train: {part: [0, 0.8], stride: 3}
  eval: {part: [0.8, 1]}
model:
  layers:
    - embedding: {name: tokens, rows: ROWS, units: 16}
    - dense: {units: 32}
    - relu
    - dense: {units: ROWS}
  loss: softmax_cross_entropy
optimizer: {adam: {learning_rate: 0.05}}
train: {batch_size: 16, steps: 40}
"""
ROWS = """\
seed: 1
shards: 4
data:
  format: text_tsv
  path: mail.tsv
  label_column: 0
  text_column: 1
  tokens: bpe
  vocabulary: tokenizer.json
  padding_token: <|endoftext|>
  max_length: 6
  eval: {path: mail.tsv}
model:
  layers:
    - embedding: {name: words, rows: ROWS, units: 4}
    - flatten
    - dense: {units: 2}
optimizer: {adam: {learning_rate: 0.05}}
train: {batch_size: 8, steps: 30}
"""


def visible_bytes():
    """GPT-2's bytes_to_unicode."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {**{byte: chr(byte) for byte in shown}, **{byte: chr(256 + i) for i, byte in enumerate(hidden)}}


def visible_list():
    return list(visible_bytes().values())


def small_tokenizer(*merges):
    """A tokenizer.json with these merges ("t h"), and <|endoftext|> after them."""
    tokens = visible_list() + [merge.replace(" ", "") for merge in merges]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {"version": "1.0", "truncation": None, "padding": None, "normalizer": None, "pre_tokenizer": byte_level,
            "post_processor": None, "decoder": byte_level,
            "added_tokens": [{"id": len(tokens), "content": END, "single_word": False, "lstrip": False, "rstrip": False,
                              "normalized": False, "special": True}],
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "", "end_of_word_suffix": "",
                      "fuse_unk": False, "byte_fallback": False, "vocab": {token: i for i, token in enumerate(tokens)},
                      "merges": list(merges)}}


MERGES = ("a b", "ab c", "abc d", "t h", "th e", "Ġ the", "Ġ s", "o u")

AWKWARD = ["", " ", "  ", "\n", "\n\n", " \n ", "a", " a", "  a", "a ", "a  ", "don't we'll I'M they're we've I'd it's 'tis 's 'll x'y", "''s '''",
           "12345 3.14 ½ ²³ Ⅷ ٣٤ १२", "naïve café Ärger İstanbul ǅ", "日本語のテキスト、句読点。", "emoji 😀👩‍👩‍👧‍👦🏳️‍🌈 x", "a\u00a0b\u2003c\u3000d\u200be\ufeff",
           "e\u0301\u0323 combining", "tab\there\r", "x" * 500, "ab" * 400 + " " + "!" * 300, " " * 300 + "end", "\t \t\n\n\n x",
           f"{END}one{END}{END} two <|endoftext", "<|user|>x <|user|> <|user|>", "[SEP][SEP] EP] [SE caf\u00e9 \u2615 caf\u00e9", "ĠaĠ ĊĊ ĉ",
           "\U0001f600\U000e0041\U0010ffff\ue000", "\x00\x01\x7f\x85x\x1c\x1d", "ﬁ ﷽ ꧁꧂ 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𐍈", "=== --- ... !!! ??? a!b?c 's!'s", "The the THE tHe"]


def random_text(rng):
    pools = ["abcdefghij the and ", " \n\t", "'stmdrevl ", "0123456789.,", "éàüßñçøåÆ", "αβγδабвгд", "漢字かな한국어", "😀🎉👍🏽‍♂️", "!?;:()[]{}<>|/\\\"#$%&*+-=@^_`~",
             "\u00a0\u2003\u3000\u2028\u0085", "\u0301\u0300\u200d\ufe0f"]
    parts = []
    for _ in range(rng.randrange(1, 12)):
        pool = rng.choice(pools)
        parts.append("".join(rng.choice(pool) for _ in range(rng.randrange(1, 9))))
        if rng.random() < 0.1:
            parts.append(rng.choice([END, "<|user|>", "[SEP]", "EP]", "<|user|>x"]))
        if rng.random() < 0.1:
            parts.append(chr(rng.choice([c for c in (rng.randrange(0x20, 0xd800), rng.randrange(0xe000, 0x110000))])))
    return "".join(parts)


class BpeTest(LockstepTest):
    def write(self, name, contents):
        path = self.folder / name
        path.write_text(contents if isinstance(contents, str) else json.dumps(contents), encoding="utf-8", newline="")
        return path

    def song(self, tokenizer=None):
        tokenizer = tokenizer or small_tokenizer(*MERGES)
        self.write("tokenizer.json", tokenizer)
        self.write("song.txt", "abcd the sound\n" * 100)
        return self.write("song.yaml", CONFIG.replace("ROWS", str(256 + len(MERGES) + 1)))

    def ids_of(self, text, vocabulary, merges=None):
        """The ids that text_windows reads from a file with this text."""
        self.write("text.txt", text)
        more = f"\n  merges: {merges}" if merges else ""
        config = self.write("ids.yaml", f"data:\n  format: text_windows\n  path: text.txt\n  tokens: bpe\n  vocabulary: {vocabulary}{more}\n  length: 1\n")
        (self.folder / "ids.npz").unlink(missing_ok=True)
        (self.folder / "ids.npy").unlink(missing_ok=True)
        (self.folder / "ids.labels.npy").unlink(missing_ok=True)
        self.lockstep("convert", config, self.folder / "ids.npy")
        features, labels = npy(self.folder / "ids.npy"), npy(self.folder / "ids.labels.npy")
        return features[:1] + labels

    def package(self, job):
        python = python_with("tokenizers")
        if python is None:
            self.skipTest("no Python has the package tokenizers")
        job = {"json": None, "texts": [], "decode": [], **job}
        done = subprocess.run([python, "-c", PACKAGE], input=json.dumps(job), capture_output=True, encoding="utf-8", check=True)
        return json.loads(done.stdout)

    def trained(self):
        """Tokenizers of the package, trained on pages of the documentation and a text in many scripts."""
        python = python_with("tokenizers")
        if python is None:
            self.skipTest("no Python has the package tokenizers")
        rng = random.Random(7)
        corpus = "".join(path.read_text(encoding="utf-8") for path in sorted((SOURCE / "docs").glob("[a-f]*.md")))
        self.write("corpus.txt", corpus + "\n".join(AWKWARD * 20) + "".join(random_text(rng) for _ in range(500)))
        subprocess.run([python, "-c", TRAIN, self.folder / "corpus.txt", self.folder], check=True, capture_output=True)

    def test_ids_and_texts_are_those_of_the_package(self):
        self.trained()
        rng = random.Random(11)
        texts = ["a b" + text + "z" for text in AWKWARD] + ["".join(random_text(rng) for _ in range(3000)) + "z" for _ in range(4)]
        whole = "\n".join(texts).replace("\r\n", "\n")
        for name in ("plain", "prefix", "whole"):
            path = str(self.folder / f"{name}.json")
            expected = self.package({"json": path, "texts": [whole]})["ids"][0]
            found = self.ids_of(whole, f"{name}.json")
            self.assertGreater(len(found), 50000)
            self.assertEqual(found, expected, name)
        expected = self.package({"vocab": str(self.folder / "vocab.json"), "merges": str(self.folder / "merges.txt"), "texts": [whole]})["ids"][0]
        self.assertEqual(self.ids_of(whole, "vocab.json", "merges.txt"), expected)

    def test_each_line_has_the_ids_of_the_package(self):
        self.trained()
        rng = random.Random(13)
        lines = [text for text in AWKWARD + [random_text(rng) for _ in range(2000)]]
        lines = ["".join(c for c in text if c not in "\n\r\t") for text in lines]
        for name in ("plain", "prefix", "whole"):
            self.write("lines.tsv", "".join(line + "\n" for line in lines))
            config = self.write("lines.yaml", "data:\n  format: text_tsv\n  path: lines.tsv\n  text_column: 0\n  labels: none\n"
                                f"  tokens: bpe\n  vocabulary: {name}.json\n  padding_token: {END}\n  max_length: 900\n")
            (self.folder / "rows.npy").unlink(missing_ok=True)
            self.lockstep("convert", config, self.folder / "rows.npy")
            ids = npy(self.folder / "rows.npy")
            expected = self.package({"json": str(self.folder / f"{name}.json"), "texts": lines})["ids"]
            end = json.loads((self.folder / f"{name}.json").read_text(encoding="utf-8"))["added_tokens"][0]["id"]
            for i, (line, wanted) in enumerate(zip(lines, expected)):
                self.assertLessEqual(len(wanted), 900)
                self.assertEqual(ids[900 * i:900 * (i + 1)], wanted + [end] * (900 - len(wanted)), repr(line))

    def test_text_of_tokens_is_that_of_the_package(self):
        """Also of windows that begin and end inside a character."""
        self.trained()
        path = str(self.folder / "plain.json")
        texts = []
        for seed in range(6):
            rng = random.Random(seed)
            whole = "".join(rng.choice("αβγд漢字かな한국어😀🎉👍🏽€é") for _ in range(400)) + "z"
            self.write("text.txt", whole)
            config = self.write("windows.yaml", "data:\n  format: text_windows\n  path: text.txt\n  tokens: bpe\n  vocabulary: plain.json\n  length: 5\n  stride: 1\n")
            found = re.findall(r"window (\d+): (.*)\.\.\.\n", self.lockstep("data", config).out)
            self.assertGreater(len(found), 2)
            ids = self.package({"json": path, "texts": [whole]})["ids"][0]
            expected = self.package({"json": path, "decode": [ids[int(at):int(at) + 5] for at, _ in found]})["texts"]
            self.assertEqual([text for _, text in found], expected)
            texts += expected
        self.assertTrue(any("\ufffd" in text for text in texts), texts)

    def test_a_run_keeps_its_tokenizer(self):
        config = self.song()
        for ranks, threads in ((1, 1), (2, 1), (3, 2), (4, 1)):
            self.train(f"run-{ranks}", ranks=ranks, threads=threads, config=config)
            self.assert_same_run("run-1", f"run-{ranks}")
        self.assertLess(records(self.folder / "run-1")[-1]["loss"], 1)
        run = self.folder / "run-1"
        kept = run / "tokenizer.json"
        self.assertFalse((run / "vocabulary.txt").exists())
        text = "abcd the thing's <|endoftext|> sound \n\n über"
        self.assertEqual(self.ids_of(text + "z", "tokenizer.json"), self.ids_of(text + "z", kept))
        for name in ("tokenizer.json", "song.txt"):
            (self.folder / name).unlink()
        out = self.lockstep("predict", run, "--prompt", "abcd", "--length", 12, "--temperature", 0).out
        self.assertEqual(out, "abcd the sound\nabcd the sound\n\n"[:len(out) - 1] + "\n")
        self.assertIn(" the sound\nabcd", out)
        hot = self.lockstep("predict", run, "--prompt", "abcd", "--length", 300, "--temperature", 100).out
        self.assertNotIn(END, hot)
        near = self.lockstep("neighbours", run, "--words", "Ġthe", "--count", 2).out
        self.assertRegex(near, r"^Ġthe \(0 times\)\n +-?\d")
        if python_with("tokenizers"):
            self.assertEqual(self.package({"json": str(kept), "texts": [text]})["ids"][0], self.ids_of(text, kept))

    def test_rows_end_in_the_padding_token(self):
        self.song()
        self.write("mail.tsv", "ham\tthe sound\nspam\tabcdab\nspam\tabcdabcd abc\nham\tthe sounds of the sea are here\n" * 10)
        config = self.write("mail.yaml", ROWS.replace("ROWS", str(256 + len(MERGES) + 1)))
        for ranks in (1, 3):
            self.train(f"run-{ranks}", ranks=ranks, config=config)
            self.assert_same_run("run-1", f"run-{ranks}")
        run = self.folder / "run-1"
        self.assertEqual(json.loads(self.lockstep("evaluate", run).out)["accuracy"], 1)
        self.write("new.txt", "abcdab\nthe sound\n")
        for name in ("tokenizer.json", "mail.tsv"):
            (self.folder / name).unlink()
        self.lockstep("predict", run, "--input", self.folder / "new.txt", "--output", self.folder / "out.csv")
        self.assertEqual([line.split(",")[1] for line in (self.folder / "out.csv").read_text(encoding="utf-8").splitlines()], ["class_name", "spam", "ham"])
        self.assert_one_error(self.lockstep("predict", run, "--input", self.folder / "new.txt", "--output", self.folder / "out.csv", "--set",
                                            "data.padding_token=a", code=2), 2, "data.padding_token has no effect")

    def test_texts_in_json_lines_have_the_same_ids(self):
        self.song()
        texts = ["the sound", "", "abcdabcd the über 😀 of " * 3, "  x", f"a{END}"]
        self.write("texts.tsv", "".join(text + "\n" for text in texts))
        self.write("texts.jsonl", "".join(json.dumps({"a": text, "b": 1.0}) + "\n" for text in texts))
        options = f"tokens: bpe, vocabulary: tokenizer.json, padding_token: {END}, max_length: 12"
        self.write("texts.yaml", f"data: {{format: text_tsv, path: texts.tsv, text_column: 0, labels: none, {options}}}\n")
        self.write("json.yaml", "data: {format: jsonl, path: texts.jsonl, features: a, labels: b, pad_to: 200, min_length: 0, "
                                f"transforms: [tokenize: {{{options}}}]}}\n")
        for name in ("texts", "json"):
            self.lockstep("convert", self.folder / f"{name}.yaml", self.folder / f"{name}.npy", *(["--transforms"] if name == "json" else []))
        rows = npy(self.folder / "texts.npy")
        self.assertEqual(npy(self.folder / "json.npy"), rows)
        end = 256 + len(MERGES)
        self.assertEqual(rows[12:24], [end] * 12)
        self.assertEqual(rows[48:51], [visible_list().index("a"), end, end])

    def test_another_tokenizer_is_not_that_of_the_run(self):
        config = self.song()
        self.train("run", config=config, steps=4)
        self.write("tokenizer.json", small_tokenizer(*MERGES[:-2], MERGES[-1], MERGES[-2]))
        arguments = self.train_arguments("run", config=config, steps=8)
        self.assert_one_error(self.lockstep(*arguments, ranks=2, code=2), 2, "the training and evaluation data changed")
        self.assert_one_error(self.lockstep(*arguments, "--accept-changes", ranks=2, code=3), 3, r"tokenizer.json, line \d+: the vocabulary of the data is not that of the run")

    def test_what_is_not_supported_is_named(self):
        config = self.song()
        good = small_tokenizer(*MERGES)

        def refused(pattern, change, code=3):
            broken = json.loads(json.dumps(good))
            change(broken)
            self.write("tokenizer.json", broken)
            self.assert_one_error(self.lockstep("train", config, "--run-dir", self.folder / "none", ranks=2, code=code), code, pattern)

        refused("the normalizer is 'NFC'", lambda t: t.update(normalizer={"type": "NFC"}))
        refused("the pre_tokenizer is 'Metaspace'", lambda t: t.update(pre_tokenizer={"type": "Metaspace"}))
        refused("there is no pre_tokenizer", lambda t: t.update(pre_tokenizer=None))
        refused("use_regex: false", lambda t: t["pre_tokenizer"].update(use_regex=False))
        refused("the model is 'WordPiece'", lambda t: t["model"].update(type="WordPiece"))
        refused("the decoder is 'BPEDecoder'", lambda t: t.update(decoder={"type": "BPEDecoder"}))
        refused("the post_processor is 'TemplateProcessing'", lambda t: t.update(post_processor={"type": "TemplateProcessing"}))
        refused("a dropout of 0.1", lambda t: t["model"].update(dropout=0.1))
        refused("end_of_word_suffix", lambda t: t["model"].update(end_of_word_suffix="</w>"))
        refused("has lstrip", lambda t: t["added_tokens"][0].update(lstrip=True))
        refused("has 'extra', which is not known", lambda t: t.update(extra=1))
        refused("has 'vocab_of_bytes', which is not known", lambda t: t["model"].update(vocab_of_bytes=1))
        refused("truncation", lambda t: t.update(truncation={"max_length": 4}))
        refused("no token for the byte 0x61 \\('a'\\)", lambda t: t["model"]["vocab"].update({"zzz": t["model"]["vocab"].pop("a")}) or
                t["model"].update(merges=[]))
        refused("makes 'ou', which is not in the vocabulary", lambda t: t["model"]["vocab"].update({"zzz": t["model"]["vocab"].pop("ou")}))
        refused("merge 9, of 'a' and 'b', is there twice", lambda t: t["model"]["merges"].append("a b"))
        refused("is not two tokens with a blank", lambda t: t["model"]["merges"].append("a b c"))
        refused("is of 'abq', which is not in the vocabulary", lambda t: t["model"]["merges"].append("abq c"))
        refused("ids are the numbers from 0 on", lambda t: t["model"]["vocab"].update(ou=1000))
        refused("have the id 1", lambda t: t["model"]["vocab"].update(ou=1))
        refused("the id of 'ou' is -4", lambda t: t["model"]["vocab"].update(ou=-4))
        refused("the id of 'ou' is \"x\"", lambda t: t["model"]["vocab"].update(ou="x"))
        refused("no object of tokens", lambda t: t["model"].update(vocab=[]))
        refused("is a vocabulary without merges", lambda t: (t.clear(), t.update(good["model"]["vocab"])))
        for text, pattern in (("{", "is no JSON"), ("[1, 2]", "is no JSON object"), ("", "is no JSON")):
            self.write("tokenizer.json", text)
            self.assert_one_error(self.lockstep("train", config, "--run-dir", self.folder / "none", code=3), 3, pattern)
        with (self.folder / "tokenizer.json").open("wb") as file:
            file.truncate((64 << 20) + 1)
        self.assert_one_error(self.lockstep("train", config, "--run-dir", self.folder / "none", code=3), 3, "is larger than 64 MiB")

    def test_options_that_do_not_fit_are_errors(self):
        config = self.song()

        def refused(pattern, *sets, of=config):
            more = [argument for one in sets for argument in ("--set", one)]
            self.assert_one_error(self.lockstep("train", of, "--run-dir", self.folder / "none", *more, code=2), 2, pattern)

        refused("lower_case: .*does not go with tokens: bpe", "data.lower_case=true")
        refused("bpe needs the option vocabulary", "data.vocabulary=null")
        refused("merges: .*needs tokens: bpe", "data.tokens=words", "data.merges=merges.txt", "data.vocabulary=null")
        self.write("mail.tsv", "ham\tthe sound\nspam\tabcdab\n" * 8)
        rows = self.write("mail.yaml", ROWS.replace("ROWS", "265"))
        refused(r"needs the option padding_token.*\n.*Its added tokens are: <\|endoftext\|>", "data.padding_token=null", of=rows)
        refused("has no token 'PAD'", "data.padding_token=PAD", of=rows)
        lengths = ["model.layers=[{embedding: {rows: 265, units: 4}}, {sequence_length: {name: n, inputs: [features], padding: %s}}, "
                   "{last_step: {inputs: [embedding1, n]}}, {dense: {units: 2}}]" % padding for padding in (0, 264)]
        refused(r"layer n counts the ids before a padding of 0, but that of the text is 264 \('<\|endoftext\|>'\)", lengths[0], of=rows)
        self.lockstep("train", rows, "--run-dir", self.folder / "lengths", "--steps", 2, "--set", lengths[1])
        refused("padding_token: .*needs tokens: bpe", "data.tokens=words", "data.vocabulary=null", of=rows)

    def test_bytes_that_are_not_utf8_are_an_error(self):
        config = self.song()
        (self.folder / "song.txt").write_bytes(b"abcd\nab\xffcd\n" * 100)
        self.assert_one_error(self.lockstep("train", config, "--run-dir", self.folder / "none", code=3), 3, r"line 2: byte 3 \(0xFF\) is not UTF-8")


def npy(path):
    """The whole numbers of a .npy file, in one list."""
    data = path.read_bytes()
    length = struct.unpack("<H", data[8:10])[0]
    header = eval(data[10:10 + length])  # of our own writer
    code = {"|u1": "B", "<u2": "H", "<i4": "i", "<i8": "q", "<f4": "f"}[header["descr"]]
    body = data[10 + length:]
    return [int(value) for value in struct.unpack(f"<{len(body) // struct.calcsize(code)}{code}", body)]


if __name__ == "__main__":
    main()
