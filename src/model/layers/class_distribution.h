// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What sampled losses draw classes with: log-uniform, or by counts in a file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/buffer.h"
#include "kernels/sampling.h"

namespace lockstep {

/// P(c) = log((c + 2) / (c + 1)) / log(classes + 1): Zipf's law for classes in decreasing order of frequency.
std::vector<double> log_uniform_probabilities(std::int64_t classes);

/// P(c) in proportion to count(c)^power, from a file with a line per class: its name, a tab, its count; as
/// vocabularies are written. Classes without a line are never drawn. Throws Error(data) with the line that is
/// not so, for more lines than classes, and if all counts are 0.
std::vector<double> unigram_probabilities(const std::string& path, std::int64_t classes, double power);

/// Probabilities as kernels want them, in memory of a device.
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
