// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/covariance.h"

#include <algorithm>
#include <bit>

#include "core/error.h"
#include "core/in_parallel.h"
#include "data/outer_products.h"
#include "data/reader_dataset.h"

namespace lockstep {

namespace {

constexpr std::int64_t kLeastParts = 8, kMostParts = 256;
constexpr std::int64_t kBytesOfParts = std::int64_t{64}
                                       << 20;  ///< of all together, if they are more than the least
/// Parts of fewer bytes are computed side by side, each by one thread; of a larger one all threads compute
/// rows.
constexpr std::int64_t kLargePart = std::int64_t{1} << 20;
constexpr std::int64_t kSamplesOfOrigin = 64;
/// Samples that are read together have about this number of values.
constexpr std::int64_t kValuesTogether = std::int64_t{1} << 18;

std::int64_t bytes_of(std::int64_t values) { return values * static_cast<std::int64_t>(sizeof(double)); }

}  // namespace

CovarianceSums::CovarianceSums(const ReaderDataset& data, const SampleChoice* choice)
    : data_(data),
      choice_(choice),
      values_per_sample_(data.stored_shape().num_elements()),
      values_(data.stages().whitening().options().over_channels ? data.stored_shape().last()
                                                                : values_per_sample_),
      vectors_per_sample_(values_per_sample_ / values_) {
  LOCKSTEP_CHECK(data.stages().whitening().options().used());
  const std::int64_t fit = kBytesOfParts / bytes_of(part_values());
  num_parts_ = static_cast<int>(std::min(std::clamp(fit, kLeastParts, kMostParts), num_samples()));
  // Equal values have exactly themselves as their mean: a constant value has no deviation.
  const std::int64_t count = std::min(kSamplesOfOrigin, num_samples());
  std::vector<double> sums(static_cast<std::size_t>(values_));
  std::vector<float> sample(static_cast<std::size_t>(values_per_sample_));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at = i * num_samples() / count;
    data_.gather_unwhitened(choice_ != nullptr ? choice_->at(at) : at, sample.data());
    for (std::size_t v = 0; v < sample.size(); ++v) sums[v % sums.size()] += sample[v];
  }
  origin_.resize(sums.size());
  std::ranges::transform(sums, origin_.begin(),
                         [&](double sum) { return sum / static_cast<double>(count * vectors_per_sample_); });
}

std::int64_t CovarianceSums::num_samples() const {
  return choice_ != nullptr ? choice_->size() : data_.size();
}

std::int64_t CovarianceSums::part_values() const { return values_ + packed_count(values_); }

/// Chosen samples [first, first + count) as deviations from the origin.
void CovarianceSums::gather(std::int64_t first, std::int64_t count, int threads,
                            std::vector<double>& deviations) const {
  constexpr std::int64_t kLeastTogether = 8;
  const std::int64_t together = std::max(kLeastTogether, count / (4 * threads));
  in_parallel(threads, (count + together - 1) / together, [&](std::int64_t group) {
    std::vector<float> sample(static_cast<std::size_t>(values_per_sample_));
    for (std::int64_t i = group * together; i < std::min((group + 1) * together, count); ++i) {
      data_.gather_unwhitened(choice_ != nullptr ? choice_->at(first + i) : first + i, sample.data());
      double* out = deviations.data() + i * values_per_sample_;
      for (std::int64_t v = 0; v < vectors_per_sample_; ++v)
        for (std::size_t k = 0; k < origin_.size(); ++k)
          *out++ = sample[static_cast<std::size_t>(v) * origin_.size() + k] - origin_[k];
    }
  });
}

CovariancePart CovarianceSums::part(int part, int threads) const {
  CovariancePart sums(static_cast<std::size_t>(part_values()));
  double* const products = sums.data() + values_;
  const std::int64_t count = num_samples(), more = count % num_parts_;
  const std::int64_t first = count / num_parts_ * part + std::min<std::int64_t>(part, more);
  const std::int64_t last = first + count / num_parts_ + (part < more ? 1 : 0);
  const std::int64_t together = std::max<std::int64_t>(1, kValuesTogether / values_per_sample_);
  std::vector<double> deviations(
      static_cast<std::size_t>(std::min(together, last - first) * values_per_sample_));
  for (std::int64_t at = first; at < last; at += together) {
    const std::int64_t now = std::min(together, last - at), vectors = now * vectors_per_sample_;
    gather(at, now, threads, deviations);
    const double* deviation = deviations.data();
    for (std::int64_t v = 0; v < vectors; ++v)
      for (std::int64_t k = 0; k < values_; ++k) sums[static_cast<std::size_t>(k)] += *deviation++;
    add_outer_products(deviations.data(), vectors, values_, products, threads);
  }
  return sums;
}

CovariancePart CovarianceSums::sum(int first, int last, int threads) const {
  const bool large = bytes_of(part_values()) >= kLargePart;
  const int together = large ? 1 : threads, each = large ? threads : 1;
  CovarianceFold fold;
  for (int at = first; at < last; at += together) {
    std::vector<CovariancePart> parts(static_cast<std::size_t>(std::min(together, last - at)));
    in_parallel(together, std::ssize(parts), [&](std::int64_t i) {
      parts[static_cast<std::size_t>(i)] = part(at + static_cast<int>(i), each);
    });
    for (CovariancePart& part : parts) fold.push(std::move(part), 1);
  }
  return fold.finish();
}

std::vector<double> CovarianceSums::finish(const CovariancePart& all, double* matrix) const {
  const auto count = static_cast<double>(num_vectors());
  std::vector<double> shift(origin_.size()), mean(origin_.size());
  for (std::size_t k = 0; k < mean.size(); ++k) {
    shift[k] = all[k] / count;
    mean[k] = origin_[k] + shift[k];
  }
  const double* const products = all.data() + values_;
  for (std::int64_t i = 0; i < values_; ++i)
    for (std::int64_t j = i; j < values_; ++j)
      matrix[i * values_ + j] = (products[packed_place(i, j, values_)] -
                                 all[static_cast<std::size_t>(i)] * shift[static_cast<std::size_t>(j)]) /
                                (count - 1);
  return mean;
}

void add_to(CovariancePart& into, const CovariancePart& from) {
  LOCKSTEP_CHECK(into.size() == from.size());
  for (std::size_t i = 0; i < into.size(); ++i) into[i] += from[i];
}

void CovarianceFold::push(CovariancePart sum, int parts) {
  nodes_.push_back({parts, std::move(sum)});
  // Only the last node of a tree has another size than a power of two.
  while (nodes_.size() > 1 && nodes_.back().parts == nodes_[nodes_.size() - 2].parts &&
         std::has_single_bit(static_cast<unsigned>(nodes_.back().parts))) {
    Node& into = nodes_[nodes_.size() - 2];
    add_to(into.sum, nodes_.back().sum);
    into.parts *= 2;
    nodes_.pop_back();
  }
}

CovariancePart CovarianceFold::finish() {
  LOCKSTEP_CHECK(!nodes_.empty());
  while (nodes_.size() > 1) {
    Node& into = nodes_[nodes_.size() - 2];
    add_to(into.sum, nodes_.back().sum);
    into.parts += nodes_.back().parts;
    nodes_.pop_back();
  }
  return std::move(nodes_.front().sum);
}

}  // namespace lockstep
