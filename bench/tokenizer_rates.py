#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Byte-level BPE of one thread, Lockstep's and that of the package `tokenizers`, in turn on the same text: MB/s, and the same ids.

    bench/tokenizer_rates.py TEXT TOKENIZER.json [--build DIR] [--python PYTHON]
    bench/tokenizer_rates.py TEXT VOCAB.json MERGES.txt
"""
import argparse
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = """
import sys, time
from tokenizers import Tokenizer, models, pre_tokenizers
text, *files = sys.argv[1:]
if len(files) == 1:
    tokenizer = Tokenizer.from_file(files[0])
else:
    tokenizer = Tokenizer(models.BPE.from_file(*files))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.add_special_tokens(["<|endoftext|>"])
text = open(text, encoding="utf-8").read()
best = 1e9
for _ in range(5):
    begin = time.perf_counter()
    ids = tokenizer.encode(text).ids
    best = min(best, time.perf_counter() - begin)
print(len(text.encode()), len(ids), f"{best:.6f}", sum(ids))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--build", default=ROOT / "build/release", type=pathlib.Path)
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    one_thread = dict(os.environ, RAYON_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false")
    found = {}
    for name, command in (("lockstep", [options.build / "bench/tokenizer_bench", *options.files, options.text]),
                          ("tokenizers", [options.python, "-c", PACKAGE, options.text, *options.files])):
        out = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True, env=one_thread).stdout.split()
        found[name] = (out[1], out[3])
        print(f"{name:<12} {int(out[0]) / 1e6 / float(out[2]):8.1f} MB/s  {out[1]} ids of {out[0]} bytes")
    if found["lockstep"] != found["tokenizers"]:
        sys.exit("the ids differ")


if __name__ == "__main__":
    main()
