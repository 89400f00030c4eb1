// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/whitening.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "config/named_options.h"
#include "config/option.h"
#include "core/symmetric_eigen.h"
#include "data/kept_array.h"
#include "data/outer_products.h"
#include "data/reader_dataset.h"

namespace lockstep {

namespace {

/// Eigenvectors of more values take more than some minutes.
constexpr std::int64_t kMostValues = 4096;
/// A direction with a smaller share of the largest variance has none: it is the noise of float32.
constexpr double kNoVariance = 1e-12;

/// As it is written.
struct Written {
  WhitenOptions options;
  std::optional<double> components;
};
constexpr ParamSpec kEpsilon = option<&Written::options, &WhitenOptions::epsilon>(
    "epsilon", "1e-6", between(0, 1e30),
    "added to the variance of each direction, which is then divided by its square root");
constexpr ParamSpec kOver = option_as<is_second_choice, &Written::options, &WhitenOptions::over_channels>(
    ParamType::string, "over", "sample", one_of("sample|channels"),
    "what is one vector: all values of a sample, or the channels of each pixel");
constexpr ParamSpec kPca[] = {
    option<&Written::components>("components", "null",
                                 above(0).up_to(1e9).or_null().note("below 1 a share of the variance"),
                                 "how many directions are kept, those of the largest variance; null: all"),
    kEpsilon, kOver};
constexpr ParamSpec kZca[] = {kEpsilon, kOver};
constexpr WhitenEntry kPcaEntry = {
    "pca", "the components of samples along the eigenvectors of their covariance, each with variance 1", kPca,
    WhitenOptions::Method::pca};
constexpr WhitenEntry kZcaEntry = {
    "zca", "uncorrelated values of variance 1 that are nearest to the samples; the shape stays", kZca,
    WhitenOptions::Method::zca};

/// The eigenvectors, the largest variance first.
class Directions {
 public:
  explicit Directions(SymmetricEigen& eigen, std::int64_t values) : eigen_(eigen), values_(values) {}
  double variance(std::int64_t i) const { return std::max(eigen_.values()[values_ - 1 - i], 0.0); }
  const double* vector(std::int64_t i) const { return eigen_.vectors() + (values_ - 1 - i) * values_; }

 private:
  SymmetricEigen& eigen_;
  std::int64_t values_;
};

/// The least number of components with more than this share of all variance, as scikit-learn's PCA counts.
std::int64_t components_of_share(const std::vector<double>& variances, double share) {
  double all = 0, sum = 0;
  for (const double variance : variances) all += variance;
  std::int64_t count = 0;
  for (const double variance : variances) {
    ++count;
    if ((sum += variance) > share * all) break;
  }
  return count;
}

std::vector<float> pca_matrix(const Directions& directions, std::int64_t values, std::int64_t components,
                              double epsilon) {
  std::vector<float> matrix;
  matrix.reserve(static_cast<std::size_t>(components * values));
  for (std::int64_t k = 0; k < components; ++k) {
    const std::span vector(directions.vector(k), static_cast<std::size_t>(values));
    const double largest =
        *std::ranges::max_element(vector, {}, [](double element) { return std::fabs(element); });
    const double factor = (largest < 0 ? -1 : 1) / std::sqrt(directions.variance(k) + epsilon);
    for (const double element : vector) matrix.push_back(static_cast<float>(factor * element));
  }
  return matrix;
}

/// The sum over directions of v v^T / sqrt(variance + epsilon), in an order of its own.
std::vector<float> zca_matrix(const Directions& directions, std::int64_t values, double epsilon,
                              int threads) {
  constexpr std::int64_t kTogether = 256;
  CovariancePart sums(static_cast<std::size_t>(packed_count(values)));
  std::vector<double> scaled(static_cast<std::size_t>(std::min(values, kTogether) * values));
  for (std::int64_t first = 0; first < values; first += kTogether) {
    const std::int64_t now = std::min(kTogether, values - first);
    for (std::int64_t k = 0; k < now; ++k) {
      const double factor = std::pow(directions.variance(first + k) + epsilon, -0.25);
      for (std::int64_t i = 0; i < values; ++i)
        scaled[static_cast<std::size_t>(k * values + i)] = factor * directions.vector(first + k)[i];
    }
    add_outer_products(scaled.data(), now, values, sums.data(), threads);
  }
  std::vector<float> matrix(static_cast<std::size_t>(values * values));
  for (std::int64_t i = 0; i < values; ++i)
    for (std::int64_t j = i; j < values; ++j)
      matrix[static_cast<std::size_t>(i * values + j)] = matrix[static_cast<std::size_t>(j * values + i)] =
          static_cast<float>(sums[static_cast<std::size_t>(packed_place(i, j, values))]);
  return matrix;
}

void refuse_no_variance(const ReaderDataset& data, const std::vector<double>& variances,
                        std::int64_t components, double epsilon) {
  const std::string source = data.where(0);
  if (!(variances[0] > 0))
    throw Error(ErrorKind::data, "has the same values in all samples: there is nothing to whiten", source,
                "Leave out whiten.");
  if (epsilon > 0) return;
  const auto with = std::ranges::count_if(
      variances, [&](double variance) { return variance > kNoVariance * variances[0]; });
  if (with >= components) return;
  throw Error(
      ErrorKind::data,
      fmt::format("has variance in {} of {} directions only, and would be divided by zero in the others",
                  with, variances.size()),
      source, "Set the option epsilon of whiten above 0, such as 1e-6, or fewer components of pca.");
}

}  // namespace

Table<WhitenEntry>& whiten_table() {
  static Table<WhitenEntry> table("whitening", {&kPcaEntry, &kZcaEntry});
  return table;
}

WhitenOptions whiten_options(const Params& params) {
  const Node whiten = params.as<WrittenWhitening>().whiten;
  if (is_null(whiten)) return {};
  const NamedOptions named = named_options(whiten, "whitening");
  const WhitenEntry& entry = whiten_table().at(named);
  const Params own(named.options, entry.table, fmt::format("whiten, {}", entry.name));
  auto [options, components] = own.as<Written>();
  options.method = entry.method;
  if (!components) return options;
  if (*components < 1) {
    options.share = *components;
  } else if (*components != std::floor(*components)) {
    throw own.error(option_name<&Written::components>(own), "is neither a whole number nor below 1",
                    "Write the number of components, or their share of the variance, such as 0.99.");
  } else {
    options.components = static_cast<std::int64_t>(*components);
  }
  return options;
}

std::optional<Shape> whitened_shape(const WhitenOptions& options, const Shape& shape) {
  if (options.method == WhitenOptions::Method::none) return shape;
  const std::int64_t values = options.over_channels ? shape.last() : shape.num_elements();
  if (values > kMostValues)
    throw Error(ErrorKind::config,
                fmt::format("whiten: vectors of {} values ({}) have a covariance of {:.3g} GB, and their "
                            "eigenvectors take too long: {} values are the most",
                            values, shape.to_string(),
                            8e-9 * static_cast<double>(values) * static_cast<double>(values), kMostValues),
                "",
                options.over_channels
                    ? "Leave out whiten."
                    : "Make samples smaller, or whiten the channels of pixels with over: channels.");
  if (options.components > values)
    throw Error(ErrorKind::config,
                fmt::format("whiten: {} components, but vectors have {} values ({})", options.components,
                            values, shape.to_string()),
                "", "Write fewer components.");
  if (options.method == WhitenOptions::Method::zca) return shape;
  if (options.share > 0) return std::nullopt;
  const std::int64_t components = options.components == 0 ? values : options.components;
  if (!options.over_channels || shape.rank() == 0) return Shape{components};
  std::vector<std::int64_t> extents(shape.extents().begin(), shape.extents().end());
  extents.back() = components;
  return Shape(extents);
}

Whitening whitening_of(const ReaderDataset& data, const CovarianceSums& sums, const CovariancePart& all,
                       int threads) {
  const WhitenOptions& options = data.stages().whitening().options();
  const std::int64_t values = sums.values();
  if (sums.num_vectors() < 2)
    throw Error(ErrorKind::data, "has one sample, which has no covariance", data.where(0),
                "Leave out whiten.");
  SymmetricEigen eigen(values);
  const std::vector<double> mean = sums.finish(all, eigen.matrix(values));
  LOCKSTEP_CHECK(eigen.solve());
  const Directions directions(eigen, values);
  Whitening result;
  for (const double value : mean) result.mean.push_back(static_cast<float>(value));
  for (std::int64_t k = 0; k < values; ++k) result.variances.push_back(directions.variance(k));
  const bool pca = options.method == WhitenOptions::Method::pca;
  std::int64_t components = pca && options.components > 0 ? options.components : values;
  if (pca && options.share > 0) components = components_of_share(result.variances, options.share);
  refuse_no_variance(data, result.variances, components, options.epsilon);
  result.matrix = pca ? pca_matrix(directions, values, components, options.epsilon)
                      : zca_matrix(directions, values, options.epsilon, threads);
  const auto finite = [](const std::vector<float>& numbers) {
    return std::ranges::all_of(numbers, [](float number) { return std::isfinite(number); });
  };
  if (!finite(result.mean) || !finite(result.matrix))
    throw Error(ErrorKind::data, "its values are too large or too small to be whitened", data.where(0),
                "Change them with the option scale.");
  return result;
}

Whitening computed_whitening(const ReaderDataset& data, const SampleChoice* choice, int threads) {
  const CovarianceSums sums(data, choice);
  return whitening_of(data, sums, sums.sum(0, sums.num_parts(), threads), threads);
}

std::string whitening_file(const Whitening& whitening) {
  const std::array<std::int64_t, 2> extents{whitening.components() + 1, whitening.values()};
  return kept_array_file(extents, {whitening.mean, whitening.matrix});
}

Whitening whitening_from_file(std::string_view bytes, const std::string& where) {
  const KeptArray array = kept_array(bytes, "whitening", where);
  if (array.extents.size() != 2 || array.extents[0] < 2 || array.extents[1] < 1)
    throw Error(ErrorKind::data, "is no whitening: it is no array of a mean and a matrix", where,
                "Restore the file: the model was trained with its numbers.");
  Whitening result;
  const auto end_of_mean = array.values.begin() + array.extents[1];
  result.mean.assign(array.values.begin(), end_of_mean);
  result.matrix.assign(end_of_mean, array.values.end());
  return result;
}

}  // namespace lockstep
