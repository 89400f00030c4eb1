// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// How fast one thread encodes a text with a byte-level BPE tokenizer: tokenizer_bench TOKENIZER.json TEXT, or
// VOCAB.json MERGES.txt TEXT. Prints the bytes, the ids, and the seconds, best of five. tokenizers.py
// compares with the package `tokenizers`.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "core/error.h"
#include "data/byte_pair_file.h"
#include "data/text_options.h"

namespace lockstep {
namespace {

int run(int count, char** arguments) {
  if (count != 3 && count != 4) {
    fmt::print(stderr, "usage: tokenizer_bench TOKENIZER.json TEXT | VOCAB.json MERGES.txt TEXT\n");
    return 2;
  }
  const BytePairs pairs =
      read_byte_pairs(arguments[1], count == 4 ? std::optional<std::string>(arguments[2]) : std::nullopt);
  const std::string text = whole_text(arguments[count - 1], false);
  double best = 1e9;
  std::int64_t ids = 0, sum = 0;
  for (int round = 0; round < 5; ++round) {
    ids = 0;
    const auto begin = std::chrono::steady_clock::now();
    pairs.encode(text, [&](std::int32_t id) {
      ++ids;
      sum += id;
    });
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    best = std::min(best, seconds.count());
  }
  fmt::print("{} {} {:.6f} {}\n", text.size(), ids, best, sum / 5);
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int count, char** arguments) {
  try {
    return lockstep::run(count, arguments);
  } catch (const lockstep::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
