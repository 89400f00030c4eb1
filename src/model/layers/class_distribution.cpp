// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/layers/class_distribution.h"

#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>

#include "core/error.h"

namespace lockstep {

std::vector<double> log_uniform_probabilities(std::int64_t classes) {
  std::vector<double> probabilities;
  for (std::int64_t c = 0; c < classes; ++c)
    probabilities.push_back(std::log1p(1.0 / static_cast<double>(c + 1)) /
                            std::log(static_cast<double>(classes + 1)));
  return probabilities;
}

std::vector<double> unigram_probabilities(const std::string& path, std::int64_t classes, double power) {
  std::error_code failed;
  LOCKSTEP_REQUIRE(!std::filesystem::exists(path, failed) || std::filesystem::is_regular_file(path, failed),
                   ErrorKind::data, "the counts of classes, {}, are no plain file", path);
  std::ifstream file(path);
  LOCKSTEP_REQUIRE(file.is_open(), ErrorKind::data, "cannot read the counts of classes from {}", path);
  std::vector<double> weights;
  double sum = 0;
  for (std::string line; std::getline(file, line);) {
    const std::string where = fmt::format("{}, line {}", path, weights.size() + 1);
    const std::size_t tab = line.rfind('\t');
    std::int64_t count = -1;
    if (tab != std::string::npos) {
      const char* end = line.data() + line.size();
      const auto [stop, error] = std::from_chars(line.data() + tab + 1, end, count);
      if (error != std::errc() || stop != end) count = -1;
    }
    if (count < 0)
      throw Error(ErrorKind::data, fmt::format("'{}' is not a word, a tab and a count", line), where,
                  "write a line per class, as in vocabulary.txt");
    if (static_cast<std::int64_t>(weights.size()) == classes)
      throw Error(ErrorKind::data, fmt::format("more lines than the {} classes of the layer", classes),
                  where);
    weights.push_back(count == 0 ? 0.0 : std::pow(static_cast<double>(count), power));
    sum += weights.back();
  }
  LOCKSTEP_REQUIRE(!file.bad(), ErrorKind::data, "{} cannot be read to its end", path);
  LOCKSTEP_REQUIRE(sum > 0, ErrorKind::data, "{} counts no class", path);
  weights.resize(static_cast<std::size_t>(classes), 0.0);
  for (double& weight : weights) weight /= sum;
  return weights;
}

DeviceDistribution::DeviceDistribution(Device& device, const std::vector<double>& probabilities)
    : classes_(static_cast<std::int64_t>(probabilities.size())),
      cumulative_(device, probabilities.size() * sizeof(std::uint64_t)),
      probability_(device, probabilities.size() * sizeof(double)) {
  std::vector<std::uint64_t> cumulative;
  double sum = 0;
  std::size_t last = 0;
  for (std::size_t c = 0; c < probabilities.size(); ++c)
    if (probabilities[c] > 0) last = c;
  constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();
  for (std::size_t c = 0; c < probabilities.size(); ++c) {
    sum += probabilities[c];
    // Rounding must not leave a remainder after the last class that can be drawn.
    cumulative.push_back(c >= last || sum >= 1.0 ? kAll : static_cast<std::uint64_t>(sum * 0x1p64));
  }
  device.copy_from_host(cumulative_.data(), cumulative.data(), cumulative_.size_bytes());
  device.copy_from_host(probability_.data(), probabilities.data(), probability_.size_bytes());
}

ClassDistribution DeviceDistribution::get() const {
  return {classes_, static_cast<const std::uint64_t*>(cumulative_.data()),
          static_cast<const double*>(probability_.data())};
}

}  // namespace lockstep
