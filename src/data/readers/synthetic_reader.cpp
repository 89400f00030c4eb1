// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Samples that are computed: for benchmarks, and to try a network without data. Sample i is a function of
// (seed, i), so that sets of any size take no memory and no disk.
#include <algorithm>
#include <array>
#include <cstring>

#include "core/error.h"
#include "core/philox.h"
#include "core/sizes.h"
#include "data/reader_options.h"
#include "data/reader_table.h"
#include "data/stored_numbers.h"

namespace lockstep {

namespace {

enum class Distribution { uniform, normal, constant };
enum class Labels { random, linear };
struct Options {
  std::int64_t samples = 0;
  std::vector<std::int64_t> shape;
  Distribution distribution{};
  bool bytes = false;
  std::optional<Labels> labels;
  std::int64_t classes = 0, seed = 0;
};
constexpr std::array kOptions = with_store_options(std::array{
    option<&Options::samples>("samples", kRequired, between(1, 1e15), "number of samples"),
    option<&Options::shape>("shape", kRequired, between(1, 1e12).note("channels last"), "shape of a sample"),
    option<&Options::distribution>("distribution", "uniform", one_of("uniform|normal|constant"),
                                   "of the features: uniform in [0, 1), standard normal, or 1"),
    option_as<is_second_choice, &Options::bytes>(ParamType::string, "dtype", "float32",
                                                 one_of("float32|uint8"),
                                                 "of the features; uint8: uniform is 0 to 255"),
    option<&Options::labels>(
        "labels", "random", one_of("random|linear").or_null(),
        "class indices: random, or the class with the largest product with the first 256 features, "
        "which a network can learn; null: none"),
    option<&Options::classes>("classes", "10", between(1, 100000), "number of classes"),
    option<&Options::seed>("seed", "1", between(0, 1e18), "of features and labels")});

constexpr std::uint32_t kFeatures = philox_purpose("synthetic/features"),
                        kLabels = philox_purpose("synthetic/labels"),
                        kWeights = philox_purpose("synthetic/weights");
/// Values of a sample that the linear rule looks at.
constexpr std::int64_t kRuleValues = 256;

class SyntheticStore final : public SampleStore {
 public:
  SyntheticStore(std::uint64_t seed, std::int64_t first_row, std::int64_t values, Distribution distribution,
                 bool bytes, bool linear, std::int64_t classes)
      : seed_(seed),
        first_row_(first_row),
        values_(values),
        distribution_(distribution),
        bytes_(bytes),
        classes_(classes) {
    if (!linear) return;
    rule_values_ = std::min(values, kRuleValues);
    weights_.resize(static_cast<std::size_t>(classes * rule_values_));
    for (std::int64_t i = 0; i < classes * rule_values_; i += 2) {
      const PhiloxBlock words = philox_words(seed, kWeights, 0, static_cast<std::uint32_t>(i), 0);
      const auto [a, b] = philox_normal(words[0], words[1]);
      weights_[static_cast<std::size_t>(i)] = static_cast<float>(a);
      if (i + 1 < classes * rule_values_) weights_[static_cast<std::size_t>(i + 1)] = static_cast<float>(b);
    }
  }

  void read(std::int64_t first, std::int64_t count, const SampleRoom& to) override {
    const std::int64_t sample_bytes = values_ * (bytes_ ? 1 : 4);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto row = static_cast<std::uint64_t>(first_row_ + first + i);
      char* const sample = static_cast<char*>(to.features) + i * sample_bytes;
      if (bytes_)
        make_bytes(row, reinterpret_cast<std::uint8_t*>(sample));
      else
        make_floats(row, reinterpret_cast<float*>(sample));
      if (to.label_indices != nullptr) to.label_indices[i] = label(row, sample);
    }
  }

 private:
  PhiloxBlock words(std::uint32_t purpose, std::uint64_t row, std::int64_t block) const {
    return philox_words(seed_, purpose, static_cast<std::uint32_t>(row >> 32),
                        static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(block));
  }

  void make_floats(std::uint64_t row, float* to) const {
    if (distribution_ == Distribution::constant) return std::fill_n(to, values_, 1.0F), void();
    for (std::int64_t at = 0; at < values_; at += 4) {
      const PhiloxBlock block = words(kFeatures, row, at / 4);
      std::array<float, 4> four{};
      if (distribution_ == Distribution::uniform) {
        std::ranges::transform(block, four.begin(), philox_uniform);
      } else {
        const auto [a, b] = philox_normal(block[0], block[1]);
        const auto [c, d] = philox_normal(block[2], block[3]);
        four = {static_cast<float>(a), static_cast<float>(b), static_cast<float>(c), static_cast<float>(d)};
      }
      std::copy_n(four.begin(), std::min<std::int64_t>(4, values_ - at), to + at);
    }
  }

  void make_bytes(std::uint64_t row, std::uint8_t* to) const {
    if (distribution_ == Distribution::constant) return std::fill_n(to, values_, std::uint8_t{1}), void();
    for (std::int64_t at = 0; at < values_; at += 16) {
      const PhiloxBlock block = words(kFeatures, row, at / 16);
      std::memcpy(to + at, block.data(), static_cast<std::size_t>(std::min<std::int64_t>(16, values_ - at)));
    }
  }

  std::int32_t label(std::uint64_t row, const char* sample) const {
    if (weights_.empty())
      return static_cast<std::int32_t>(
          std::uint64_t{words(kLabels, row, 0)[0]} * static_cast<std::uint64_t>(classes_) >> 32);
    // The middle of the distribution is no class's direction.
    const double middle = distribution_ == Distribution::normal ? 0.0 : bytes_ ? 127.5 : 0.5;
    std::int32_t best = 0;
    double most = 0;
    const float* weight = weights_.data();
    for (std::int32_t of_class = 0; of_class < classes_; ++of_class) {
      double sum = 0;
      for (std::int64_t i = 0; i < rule_values_; ++i) {
        const double value = bytes_ ? static_cast<double>(reinterpret_cast<const std::uint8_t*>(sample)[i])
                                    : static_cast<double>(reinterpret_cast<const float*>(sample)[i]);
        sum += (value - middle) * double{*weight++};
      }
      if (of_class == 0 || sum > most) most = sum, best = of_class;
    }
    return best;
  }

  const std::uint64_t seed_;
  const std::int64_t first_row_, values_;
  const Distribution distribution_;
  const bool bytes_;
  const std::int64_t classes_;
  std::int64_t rule_values_ = 0;
  std::vector<float> weights_;  ///< classes x rule_values; empty: labels are random
};

DatasetParts make(const Params& params, const std::string&) {
  const auto o = params.as<Options>();
  const bool linear = o.labels == Labels::linear;
  if (o.bytes && o.distribution == Distribution::normal)
    throw params.error("distribution", "is normal, which bytes cannot be", "Set dtype: float32.");
  if (linear && o.distribution == Distribution::constant)
    throw params.error("labels", "is linear, but all samples are equal", "Choose another distribution.");
  DatasetParts parts;
  parts.source = "synthetic";
  parts.record_word = "sample";
  const RowRange rows = checked_rows(rows_option(params), o.samples, parts.source);
  parts.first_record = rows.first;
  parts.size = rows.last - rows.first;
  parts.feature_shape = sample_shape(o.shape, false, params.where("shape"));
  const std::int64_t values = parts.feature_shape.num_elements();
  if (values > std::int64_t{1} << 34 || !product_up_to(kMaxExtentProduct, {o.samples, values}))
    throw params.error("shape", "makes too many values", "A sample has at most 2^34, all together 2^59.");
  parts.feature_dtype = o.bytes ? DType::u8 : DType::f32;
  parts.num_label_columns = o.labels ? 1 : 0;
  parts.label_kind = o.labels ? LabelKind::indices : LabelKind::none;
  parts.transform = transform_options(params);
  parts.store = std::make_shared<SyntheticStore>(static_cast<std::uint64_t>(o.seed), rows.first, values,
                                                 o.distribution, o.bytes, linear, o.classes);
  return parts;
}

DatasetParts make_input(const Params&, const InputRequest& request) {
  throw Error(ErrorKind::config, "the reader synthetic reads no files, but one was given",
              request.paths.front(), "Predict with a model that was trained on files.");
}

std::vector<std::string> files(const Params&, const std::string&) { return {}; }

}  // namespace

extern const ReaderEntry kSyntheticReader = {
    "synthetic", "samples that are computed, for benchmarks", kOptions, make, make_input, nullptr, false,
    files};

}  // namespace lockstep
