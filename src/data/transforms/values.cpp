// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// normalize, scale, clip, log, standardize: fixed transforms of values.
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "data/channel_normalizer.h"
#include "data/transforms/family.h"
#include "data/unit_change.h"

namespace lockstep {

namespace {

class Normalize final : public ValueTransform, public UnitTransform {
 public:
  explicit Normalize(const Params& p) : mean_(floats(p.reals("mean"))), std_(floats(p.reals("std"))) {
    for (const auto* option : {"mean", "std"})
      if (p.reals(option).empty()) throw p.error(option, "is an empty list", "Give one value per channel.");
  }
  Shape prepare(const Shape& shape) override {
    for (const auto& [name, list] : {std::pair{"mean", &mean_}, std::pair{"std", &std_}})
      if (list->size() > 1 && static_cast<std::int64_t>(list->size()) != shape.last())
        throw Error(ErrorKind::config,
                    fmt::format("{} has {} values, but the samples have {} channels ({})", name, list->size(),
                                shape.last(), shape.to_string()),
                    "", "Give one value per channel, or one for all.");
    normalizer_ = ChannelNormalizer(mean_, std_, shape.last());
    return ValueTransform::prepare(shape);
  }
  std::optional<UnitChange> unit_change() const override {
    const auto at = [](const std::vector<float>& list, std::int64_t channel) {
      return static_cast<double>(list[list.size() == 1 ? 0 : static_cast<std::size_t>(channel)]);
    };
    return UnitChange{.forward = [at, mean = mean_, std = std_](
                                     double x, std::int64_t c) { return (x - at(mean, c)) / at(std, c); },
                      .back = [at, mean = mean_, std = std_](
                                  double y, std::int64_t c) { return y * at(std, c) + at(mean, c); }};
  }
  void apply(const float* in, float* out, SampleRandom*, float*) const override {
    normalizer_.apply(in, out, count_);
  }

 private:
  std::vector<float> mean_, std_;
  ChannelNormalizer normalizer_;
};

class Scale final : public ValueTransform, public UnitTransform {
 public:
  explicit Scale(const Params& p)
      : factor_(static_cast<float>(p.real("factor"))), offset_(static_cast<float>(p.real("offset"))) {}
  std::optional<UnitChange> unit_change() const override {
    if (factor_ == 0) return {};
    const double factor = static_cast<double>(factor_), offset = static_cast<double>(offset_);
    return UnitChange{.forward = [=](double x, std::int64_t) { return x * factor + offset; },
                      .back = [=](double y, std::int64_t) { return (y - offset) / factor; }};
  }
  void apply(const float* in, float* out, SampleRandom*, float*) const override {
    for (std::int64_t i = 0; i < count_; ++i) out[i] = in[i] * factor_ + offset_;
  }

 private:
  float factor_, offset_;
};

class Clip final : public ValueTransform, public UnitTransform {
 public:
  explicit Clip(const Params& p)
      : min_(static_cast<float>(p.real("min"))), max_(static_cast<float>(p.real("max"))) {
    if (min_ > max_) throw p.error("max", "is below min");
  }
  /// What was cut off does not come back, but the unit is the same.
  std::optional<UnitChange> unit_change() const override { return UnitChange{}; }
  RangeEffect range_effect() const override { return min_ >= 0 ? RangeEffect::keeps : RangeEffect::changes; }
  void apply(const float* in, float* out, SampleRandom*, float*) const override {
    for (std::int64_t i = 0; i < count_; ++i) out[i] = std::min(std::max(in[i], min_), max_);
  }

 private:
  float min_, max_;
};

class Log final : public ValueTransform, public UnitTransform {
 public:
  explicit Log(const Params& p) : offset_(static_cast<float>(p.real("offset"))) {}
  std::optional<ValueRange> takes() const override {
    return ValueRange{.in_fixed_form = true, .after_centring_only = true};
  }
  std::optional<UnitChange> unit_change() const override {
    const double offset = static_cast<double>(offset_);
    return UnitChange{.forward = [=](double x, std::int64_t) { return std::log(std::max(x, 0.0) + offset); },
                      .back = [=](double y, std::int64_t) { return std::exp(y) - offset; }};
  }
  void apply(const float* in, float* out, SampleRandom*, float*) const override {
    for (std::int64_t i = 0; i < count_; ++i) out[i] = std::log(std::max(in[i], 0.0F) + offset_);
  }

 private:
  float offset_;
};

/// TensorFlow's tf.image.per_image_standardization.
class Standardize final : public ValueTransform {
 public:
  explicit Standardize(const Params&) {}
  void apply(const float* in, float* out, SampleRandom*, float*) const override {
    double sum = 0, squares = 0;
    for (std::int64_t i = 0; i < count_; ++i) sum += in[i];
    const double mean = sum / static_cast<double>(count_);
    for (std::int64_t i = 0; i < count_; ++i) squares += (in[i] - mean) * (in[i] - mean);
    const double std = std::max(std::sqrt(squares / static_cast<double>(count_)),
                                1 / std::sqrt(static_cast<double>(count_)));
    const auto shift = static_cast<float>(mean), factor = static_cast<float>(1 / std);
    for (std::int64_t i = 0; i < count_; ++i) out[i] = (in[i] - shift) * factor;
  }
};

constexpr ParamSpec kNormalize[] = {
    {"mean", ParamType::reals, kRequired, between(-1e30, 1e30).note("one per channel, or one"),
     "subtracted first"},
    {"std", ParamType::reals, "1", above(0).up_to(1e30).note("one per channel, or one"), "divisor"}};
constexpr ParamSpec kScale[] = {
    {"factor", ParamType::real, "1", between(-1e30, 1e30), "factor, applied first"},
    {"offset", ParamType::real, "0", between(-1e30, 1e30), "added after it"}};
constexpr ParamSpec kClip[] = {{"min", ParamType::real, "0", between(-1e30, 1e30), "smallest value"},
                               {"max", ParamType::real, "1", between(-1e30, 1e30), "largest value"}};
constexpr ParamSpec kLog[] = {
    {"offset", ParamType::real, "1", above(0).up_to(1e30), "added before the logarithm"}};

}  // namespace

extern const TransformEntry kNormalizeTransform = {"normalize", "(x - mean) / std per channel, the last axis",
                                                   kNormalize, make_transform<Normalize>};
extern const TransformEntry kScaleTransform = {"scale", "x * factor + offset", kScale, make_transform<Scale>};
extern const TransformEntry kClipTransform = {"clip", "min(max(x, min), max)", kClip, make_transform<Clip>};
extern const TransformEntry kLogTransform = {"log", "natural logarithm of max(x, 0) + offset", kLog,
                                             make_transform<Log>};
extern const TransformEntry kStandardizeTransform = {
    "standardize",
    "(x - m) / max(s, 1 / sqrt(n)) with mean m and standard deviation s of the sample's n values",
    {},
    make_transform<Standardize>};

}  // namespace lockstep
