// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Uses the installed library: headers and compiled functions of low rooms (core, config) and of high ones
// (run, api). lockstep.h includes all public headers but two.
#include <lockstep/lockstep.h>

#include <cstdio>
#include <vector>

int main() {
  const lockstep::Shape batch = lockstep::Shape{8, 8, 1}.with_front(32);
  const lockstep::TrainingLoss loss = lockstep::losses::softmax_cross_entropy(
      lockstep::LabelColumns(), lockstep::layers::dense(lockstep::Features(), {.units = 2}));
  const std::vector<std::string> overrides{"train.batch_size=32"};
  const lockstep::Config config = lockstep::config_from_text(
      "{data: {format: csv, path: a.csv, shape: [4]}, model: {layers: [dense: {units: 2}]}, "
      "optimizer: adam, "
      "train: {batch_size: 8, steps: 1}}",
      "consumer", overrides);
  const bool right = batch.to_string() == "32x8x8x1" && loss.exists() && config.train.batch_size == batch[0];
  std::printf("lockstep %.*s: %s\n", static_cast<int>(lockstep::kVersion.size()), lockstep::kVersion.data(),
              right ? "works" : "is wrong");
  return right ? 0 : 1;
}
