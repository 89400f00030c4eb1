// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// change_weight FILE TENSOR INDEX: makes one number of a checkpoint a little larger, and writes the file
// again with right checksums: what a checkpoint of other bits would be. For replay_test.py.
// change_weight FILE config OLD NEW: replaces a text in the configuration that the checkpoint keeps: what an
// earlier program would have written. For silent_mistakes_test.py.
#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "core/buffer.h"
#include "io/checkpoint.h"

int main(int argc, char** argv) {
  using namespace lockstep;
  const bool changes_config = argc == 5 && std::string_view(argv[2]) == "config";
  if (argc != 4 && !changes_config) {
    fmt::print(stderr, "change_weight FILE TENSOR INDEX, or FILE config OLD NEW\n");
    return 2;
  }
  try {
    const CheckpointFile file(argv[1]);
    std::vector<Buffer> memory;
    std::vector<CheckpointTensor> tensors;
    bool found = false;
    for (const CheckpointEntry& entry : file.entries()) {
      const Tensor shape_only(nullptr, entry.dtype, entry.shape);
      memory.emplace_back(cpu_device(), shape_only.size_bytes());
      const Tensor tensor(memory.back().data(), entry.dtype, entry.shape);
      file.read_into(entry.path, tensor);
      if (!changes_config && entry.path == argv[2]) {
        tensor.f32()[std::atoi(argv[3])] *= 1.0001F;
        found = true;
      }
      tensors.push_back({entry.path, tensor});
    }
    CheckpointHeader header = file.header();
    if (changes_config) {
      const std::string_view old(argv[3]), other(argv[4]);
      for (std::size_t at = header.config.find(old); at != std::string::npos;
           at = header.config.find(old, at + other.size())) {
        header.config.replace(at, old.size(), other);
        found = true;
      }
    }
    if (!found) throw Error(ErrorKind::usage, fmt::format("no {}", argv[changes_config ? 3 : 2]), argv[1]);
    write_checkpoint(argv[1], header, tensors);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
