// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests of estimators: a small model, samples in memory, and a run directory that all ranks use.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "api/estimator.h"
#include "config/params.h"
#include "core/philox.h"
#include "support/mpi_environment.h"
#include "support/mpi_world.h"

namespace lockstep {

/// A folder of the test that does not exist yet, the same on all ranks. Rank 0 removes it when the program
/// ends. All ranks.
inline std::string fresh_run_dir(const std::string& name) {
  struct Folders {
    std::vector<std::string> paths;
    ~Folders() {
      std::error_code ignored;
      for (const std::string& path : paths) std::filesystem::remove_all(path, ignored);
    }
  };
  static Folders folders;
  std::int64_t process = ::getpid();
  test_world().broadcast(&process, sizeof process, 0, "name of the run directory");
  const std::string path =
      (std::filesystem::temp_directory_path() / fmt::format("lockstep_{}_{}", name, process)).string();
  if (test_world().rank() == 0) {
    std::filesystem::remove_all(path);
    folders.paths.push_back(path);
  }
  test_world().barrier("fresh run directory");
  return path;
}

/// `size` samples of 6 numbers in 3 classes that can be told apart.
inline SampleArrays class_samples(std::int64_t size = 60) {
  SampleArrays samples{.shape = Shape{6}};
  for (std::int64_t i = 0; i < size; ++i) {
    const auto label = static_cast<std::int32_t>(i % 3);
    samples.classes.push_back(label);
    for (std::uint32_t k = 0; k < 6; ++k) {
      const PhiloxBlock words = philox_words(3, 1, 0, static_cast<std::uint32_t>(i), k);
      samples.features.push_back(2 * philox_uniform(words[0]) - 1 +
                                 (static_cast<std::int32_t>(k) % 3 == label ? 0.7F : 0.0F));
    }
  }
  return samples;
}

inline InputFunction class_input(const std::string& name = "train", std::int64_t size = 60) {
  return [=] { return Input::arrays(name, class_samples(size)); };
}

inline EstimatorSpec small_model(const Features& features, const LabelColumns& labels, Mode, const Params&) {
  const LayerOutput hidden = layers::relu(layers::dense(features, {.units = 8}));
  const LayerOutput logits =
      layers::dense(layers::dropout(hidden, {.rate = 0.25}), {.name = "logits", .units = 3});
  return {.loss = losses::softmax_cross_entropy(labels, logits),
          .train_op = {.optimizer = optimizers::adam({.learning_rate = 0.01})}};
}

inline RunConfig small_run(const std::string& run_dir) {
  return {.model_dir = run_dir,
          .train = {.batch_size = 16},
          .general = {.seed = 3, .shards = 4, .threads = 1},
          .checkpoint = {.every_epochs = 0}};
}

}  // namespace lockstep
