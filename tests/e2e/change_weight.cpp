// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// change_weight FILE TENSOR INDEX: makes one number of a checkpoint a little larger, and writes the file
// again with right checksums: what a checkpoint of other bits would be. For replay_test.py.
#include <fmt/format.h>

#include <cstdlib>

#include "core/buffer.h"
#include "io/checkpoint.h"

int main(int argc, char** argv) {
  using namespace lockstep;
  if (argc != 4) {
    fmt::print(stderr, "change_weight FILE TENSOR INDEX\n");
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
      if (entry.path == argv[2]) {
        tensor.f32()[std::atoi(argv[3])] *= 1.0001F;
        found = true;
      }
      tensors.push_back({entry.path, tensor});
    }
    if (!found) throw Error(ErrorKind::usage, fmt::format("no tensor {}", argv[2]), argv[1]);
    write_checkpoint(argv[1], file.header(), tensors);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
