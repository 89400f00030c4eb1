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
  struct Options {
    std::vector<float> mean, std;
  };
  explicit Normalize(Options o) : o_(std::move(o)) {}
  Shape prepare(const Shape& shape) override {
    for (const auto& [name, list] : {std::pair{"mean", &o_.mean}, std::pair{"std", &o_.std}})
      if (list->size() > 1 && static_cast<std::int64_t>(list->size()) != shape.last())
        throw Error(ErrorKind::config,
                    fmt::format("{} has {} values, but the samples have {} channels ({})", name, list->size(),
                                shape.last(), shape.to_string()),
                    "", "Give one value per channel, or one for all.");
    normalizer_ = ChannelNormalizer(o_.mean, o_.std, shape.last());
    return ValueTransform::prepare(shape);
  }
  std::optional<UnitChange> unit_change() const override {
    const auto at = [](const std::vector<float>& list, std::int64_t channel) {
      return static_cast<double>(list[list.size() == 1 ? 0 : static_cast<std::size_t>(channel)]);
    };
    return UnitChange{.forward = [at, mean = o_.mean, std = o_.std](
                                     double x, std::int64_t c) { return (x - at(mean, c)) / at(std, c); },
                      .back = [at, mean = o_.mean, std = o_.std](
                                  double y, std::int64_t c) { return y * at(std, c) + at(mean, c); }};
  }
  void apply(const float* in, float* out, SampleRandom*, float*) const override {
    normalizer_.apply(in, out, count_);
  }

 private:
  Options o_;
  ChannelNormalizer normalizer_;
};

class Scale final : public ValueTransform, public UnitTransform {
 public:
  struct Options {
    float factor = 0, offset = 0;
  };
  explicit Scale(const Options& o) : factor_(o.factor), offset_(o.offset) {}
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
  struct Options {
    float min = 0, max = 0;
  };
  explicit Clip(const Options& o, const Params& p) : min_(o.min), max_(o.max) {
    if (min_ > max_) throw p.error(option_name<&Options::max>(p), "is below min");
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
  struct Options {
    float offset = 0;
  };
  explicit Log(const Options& o) : offset_(o.offset) {}
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
    option_as<floats, &Normalize::Options::mean>(ParamType::reals, "mean", kRequired,
                                                 between(-1e30, 1e30).note("one per channel, or one"),
                                                 "subtracted first"),
    option_as<floats, &Normalize::Options::std>(
        ParamType::reals, "std", "1", above(0).up_to(1e30).note("one per channel, or one"), "divisor")};
constexpr ParamSpec kScale[] = {
    option<&Scale::Options::factor>("factor", "1", between(-1e30, 1e30), "factor, applied first"),
    option<&Scale::Options::offset>("offset", "0", between(-1e30, 1e30), "added after it")};
constexpr ParamSpec kClip[] = {
    option<&Clip::Options::min>("min", "0", between(-1e30, 1e30), "smallest value"),
    option<&Clip::Options::max>("max", "1", between(-1e30, 1e30), "largest value")};
constexpr ParamSpec kLog[] = {
    option<&Log::Options::offset>("offset", "1", above(0).up_to(1e30), "added before the logarithm")};

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
