// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The distributions from which sampled losses draw classes: log-uniform, or proportional to counts in a file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/buffer.h"
#include "kernels/sampling.h"

namespace lockstep {

/// P(c) = log((c + 2) / (c + 1)) / log(classes + 1): Zipf's law for classes in decreasing order of frequency.
std::vector<double> log_uniform_probabilities(std::int64_t classes);

/// P(c) is proportional to count(c)^power. The file has a line per class: name, tab, count, as in a
/// vocabulary file. Classes without a line are never drawn. Throws Error(data), with the line, for a
/// malformed line, for more lines than classes, and if all counts are 0.
std::vector<double> unigram_probabilities(const std::string& path, std::int64_t classes, double power);

/// Probabilities in device memory, in the form that kernels take.
class DeviceDistribution {
 public:
  DeviceDistribution() = default;
  DeviceDistribution(Device& device, const std::vector<double>& probabilities);
  ClassDistribution get() const;
  bool empty() const { return classes_ == 0; }

 private:
  std::int64_t classes_ = 0;
  Buffer cumulative_, probability_;
};

}  // namespace lockstep
