// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Uses the installed library: headers and compiled functions of the first room (core) and of the last one
// (driver).
#include <cstdio>
#include <vector>

#include "core/arena.h"
#include "core/shape.h"
#include "core/version.h"
#include "run/sections/config.h"

int main() {
  const lockstep::Shape batch = lockstep::Shape{8, 8, 1}.with_front(32);
  lockstep::ArenaPlan plan;
  plan.add(1000, 0, 1);
  plan.add(1000, 2, 3);
  plan.commit();
  const std::vector<std::string> overrides{"train.batch_size=32"};
  const lockstep::Config config = lockstep::config_from_text(
      "{data: {format: csv, path: a.csv, shape: [4]}, model: {layers: [dense: {units: 2}]}, "
      "optimizer: adam, "
      "train: {batch_size: 8, steps: 1}}",
      "consumer", overrides);
  const bool right =
      batch.to_string() == "32x8x8x1" && plan.total_bytes() == 1024 && config.train.batch_size == batch[0];
  std::printf("lockstep %.*s: %s\n", static_cast<int>(lockstep::kVersion.size()), lockstep::kVersion.data(),
              right ? "works" : "is wrong");
  return right ? 0 : 1;
}
