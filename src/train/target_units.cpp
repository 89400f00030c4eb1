// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/target_units.h"

#include <fmt/format.h>

#include "core/symmetric_eigen.h"
#include "data/reader_dataset.h"

namespace lockstep {

namespace {

/// Of a number of a sample: there is one for each channel, for each number, or for all.
double at(const std::vector<float>& values, std::int64_t number, double none) {
  return values.empty() ? none
                        : static_cast<double>(values[static_cast<std::size_t>(number) % values.size()]);
}

/// out = matrix * in, `n` x `n`, row-major.
template <typename T>
void multiply(const std::vector<T>& matrix, std::span<double> in_out, std::vector<double>& scratch) {
  const std::size_t n = in_out.size();
  scratch.assign(in_out.begin(), in_out.end());
  for (std::size_t row = 0; row < n; ++row) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += static_cast<double>(matrix[row * n + i]) * scratch[i];
    in_out[row] = sum;
  }
}

/// Number i is of channel (first + i) modulo `channels`.
void convert(const std::function<double(double, std::int64_t)>& change, std::int64_t first,
             std::int64_t channels, std::span<double> numbers) {
  if (!change) return;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = change(numbers[i], (first + static_cast<std::int64_t>(i)) % channels);
}

}  // namespace

TargetUnits::TargetUnits(const ReaderDataset& target)
    : stages_(target.stages()), channels_(channels_of(target.stored_shape(), target.sequence() != nullptr)) {
  const FeatureTransform& transform = stages_.conversion().transform();
  const WhitenStage& whitening = stages_.whitening();
  const TransformList& transforms = stages_.transforms();
  converts_ = transform.scale != 1 || transform.offset != 0 || !transform.mean.empty() ||
              !transform.std.empty() || transform.normalize != NormalizeBy::none;
  whitens_ = whitening.options().used();
  differs_ = converts_ || whitens_ || !transforms.empty();
  if (!differs_) return;
  if (target.feature_shape().rank() > 0) last_channels_ = target.feature_shape().last();
  const std::string step = transforms.way_back(changes_);
  const auto per_value = [&](const std::vector<float>& values) { return std::ssize(values) > channels_; };
  if (!step.empty()) {
    problem_ = fmt::format("the transform {} has no inverse", step);
  } else if (!stages_.are_fitted()) {
    problem_ = "the numbers of its normalisation are not known";
  } else if (transform.scale == 0) {
    problem_ = "its scale is 0";
  } else if (transforms.moves_values() && (per_value(transform.mean) || per_value(transform.std))) {
    problem_ = "each of its values has a mean of its own, and a transform moves them";
  } else if (whitens_ && whitening.whitening()->components() != whitening.whitening()->values()) {
    problem_ = fmt::format("its whitening keeps {} components of {} values",
                           whitening.whitening()->components(), whitening.whitening()->values());
  } else if (whitens_ && !whitening.options().over_channels && transforms.moves_values()) {
    problem_ = "a transform moves its whitened values";
  } else if (whitens_) {
    invert_whitening();
  }
}

/// Rows of pca are orthogonal, so the inverse of the matrix W is its transpose, divided by the squares of
/// their lengths. The matrix of zca is symmetric: W = U D U^T gives U D^-1 U^T.
void TargetUnits::invert_whitening() {
  const Whitening& whitening = *stages_.whitening().whitening();
  const auto n = static_cast<std::size_t>(whitening.values());
  inverse_.assign(n * n, 0);
  if (stages_.whitening().options().method == WhitenOptions::Method::pca) {
    for (std::size_t row = 0; row < n; ++row) {
      double square = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const double value = static_cast<double>(whitening.matrix[row * n + i]);
        square += value * value;
      }
      for (std::size_t i = 0; i < n; ++i)
        inverse_[i * n + row] = static_cast<double>(whitening.matrix[row * n + i]) / square;
    }
    return;
  }
  SymmetricEigen eigen(static_cast<std::int64_t>(n));
  double* const matrix = eigen.matrix(static_cast<std::int64_t>(n));
  for (std::size_t i = 0; i < n * n; ++i) matrix[i] = static_cast<double>(whitening.matrix[i]);
  if (!eigen.solve() || !(eigen.values()[0] > 0)) {
    inverse_.clear();
    problem_ = "the matrix of its whitening has no inverse";
    return;
  }
  for (std::size_t k = 0; k < n; ++k) {
    const double* const vector = eigen.vectors() + k * n;
    for (std::size_t row = 0; row < n; ++row)
      for (std::size_t i = 0; i < n; ++i)
        inverse_[row * n + i] += vector[row] * vector[i] / eigen.values()[k];
  }
}

/// model = (data * factor + offset - mean) / std.
TargetUnits::Linear TargetUnits::conversion_of(std::int64_t number) const {
  const FeatureTransform& transform = stages_.conversion().transform();
  const double factor = static_cast<double>(transform.scale);
  return {at(transform.std, number, 1) / factor,
          (at(transform.mean, number, 0) - static_cast<double>(transform.offset)) / factor};
}

bool TargetUnits::is_linear(std::int64_t number, double& scale, double& shift) const {
  if (whitens_ || !stages_.transforms().empty()) return false;
  const Linear linear = conversion_of(number);
  scale = linear.scale;
  shift = linear.shift;
  return true;
}

void TargetUnits::to_data(std::int64_t first, std::span<double> numbers) const {
  for (auto change = changes_.rbegin(); change != changes_.rend(); ++change)
    convert(change->back, first, last_channels_, numbers);
  if (whitens_) {
    const Whitening& whitening = *stages_.whitening().whitening();
    const std::size_t n = whitening.mean.size();
    thread_local std::vector<double> scratch;  // keeps its memory
    for (std::size_t begin = 0; begin < numbers.size(); begin += n) {
      const std::span<double> vector = numbers.subspan(begin, n);
      multiply(inverse_, vector, scratch);
      for (std::size_t i = 0; i < n; ++i) vector[i] += static_cast<double>(whitening.mean[i]);
    }
  }
  if (!converts_) return;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const Linear linear = conversion_of(first + static_cast<std::int64_t>(i));
    numbers[i] = numbers[i] * linear.scale + linear.shift;
  }
}

void TargetUnits::to_model(std::int64_t first, std::span<double> numbers) const {
  if (converts_)
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const Linear linear = conversion_of(first + static_cast<std::int64_t>(i));
      numbers[i] = (numbers[i] - linear.shift) / linear.scale;
    }
  if (whitens_) {
    const Whitening& whitening = *stages_.whitening().whitening();
    const std::size_t n = whitening.mean.size();
    thread_local std::vector<double> scratch;
    for (std::size_t begin = 0; begin < numbers.size(); begin += n) {
      const std::span<double> vector = numbers.subspan(begin, n);
      for (std::size_t i = 0; i < n; ++i) vector[i] -= static_cast<double>(whitening.mean[i]);
      multiply(whitening.matrix, vector, scratch);
    }
  }
  for (const UnitChange& change : changes_) convert(change.forward, first, last_channels_, numbers);
}

}  // namespace lockstep
