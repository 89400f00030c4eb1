// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/initializer.h"

#include <array>
#include <cmath>

#include "config/named_options.h"
#include "config/option.h"
#include "core/philox.h"

namespace lockstep {

namespace {

PhiloxBlock words_of(std::uint64_t seed, std::uint32_t purpose, std::uint32_t attempt, std::uint64_t block) {
  return philox_words(seed, purpose, attempt, static_cast<std::uint32_t>(block >> 32),
                      static_cast<std::uint32_t>(block));
}

class Constant final : public Initializer {
 public:
  explicit Constant(float value) : value_(value) {}
  void fill(std::uint64_t, std::string_view, const Shape&, std::span<float> values) const override {
    for (float& value : values) value = value_;
  }

 private:
  float value_;
};

void fill_uniform(std::uint64_t seed, std::string_view name, std::span<float> values, double low,
                  double high) {
  const std::uint32_t purpose = philox_purpose(name);
  for (std::size_t i = 0; i < values.size(); i += 4) {
    const PhiloxBlock words = words_of(seed, purpose, 0, i / 4);
    for (std::size_t j = 0; j < 4 && i + j < values.size(); ++j)
      values[i + j] = static_cast<float>(low + (high - low) * (static_cast<double>(words[j]) * 0x1p-32));
  }
}

/// Normal numbers; one beyond two standard deviations is drawn again, from the stream of the next attempt.
void fill_normal(std::uint64_t seed, std::string_view name, std::span<float> values, double mean,
                 double stddev, bool truncated) {
  const std::uint32_t purpose = philox_purpose(name);
  for (std::size_t i = 0; i < values.size(); ++i) {
    double number = 3.0;
    for (std::uint32_t attempt = 0; attempt == 0 || (truncated && std::abs(number) > 2.0); ++attempt) {
      const PhiloxBlock words = words_of(seed, purpose, attempt, i / 4);
      const std::size_t pair = i % 4 / 2 * 2;
      number = philox_normal(words[pair], words[pair + 1])[i % 2];
    }
    values[i] = static_cast<float>(mean + stddev * number);
  }
}

class Uniform final : public Initializer {
 public:
  Uniform(double low, double high) : low_(low), high_(high) {}
  void fill(std::uint64_t seed, std::string_view name, const Shape&, std::span<float> values) const override {
    fill_uniform(seed, name, values, low_, high_);
  }

 private:
  double low_, high_;
};

class Normal final : public Initializer {
 public:
  Normal(double mean, double stddev, bool truncated) : mean_(mean), stddev_(stddev), truncated_(truncated) {}
  void fill(std::uint64_t seed, std::string_view name, const Shape&, std::span<float> values) const override {
    fill_normal(seed, name, values, mean_, stddev_, truncated_);
  }

 private:
  double mean_, stddev_;
  bool truncated_;
};

/// Variance scale / fan: Glorot (fan = mean of in and out; Glorot and Bengio 2010), He (fan = in, scale 2; He
/// et al. 2015).
class VarianceScaling final : public Initializer {
 public:
  VarianceScaling(double scale, bool fan_in, bool normal) : scale_(scale), fan_in_(fan_in), normal_(normal) {}
  void fill(std::uint64_t seed, std::string_view name, const Shape& shape,
            std::span<float> values) const override {
    const Fans fans = fans_of(shape);
    const double variance = scale_ / (fan_in_ ? fans.in : (fans.in + fans.out) / 2);
    // 0.8796... is the standard deviation of a standard normal truncated at two. Dividing by it keeps the
    // requested variance.
    if (normal_) return fill_normal(seed, name, values, 0.0, std::sqrt(variance) / 0.87962566103423978, true);
    const double limit = std::sqrt(3 * variance);
    fill_uniform(seed, name, values, -limit, limit);
  }

 private:
  double scale_;
  bool fan_in_, normal_;
};

using Made = std::shared_ptr<const Initializer>;

struct ConstantOptions {
  float value = 0;
};
constexpr ParamSpec kConstantTable[] = {
    option<&ConstantOptions::value>("value", "0.0", between(-1e30, 1e30), "the value of every element")};
struct UniformOptions {
  double low = 0, high = 0;
};
constexpr ParamSpec kUniformTable[] = {
    option<&UniformOptions::low>("low", "-0.05", between(-1e30, 1e30), "lower end"),
    option<&UniformOptions::high>("high", "0.05", between(-1e30, 1e30), "upper end (excluded)")};
struct NormalOptions {
  double mean = 0, stddev = 0;
};
constexpr ParamSpec kNormalTable[] = {
    option<&NormalOptions::mean>("mean", "0.0", between(-1e30, 1e30), "mean"),
    option<&NormalOptions::stddev>("stddev", "0.05", above(0).up_to(1e30), "standard deviation")};

template <bool kTruncated>
Made make_normal(const Params& p) {
  const auto [mean, stddev] = p.as<NormalOptions>();
  return std::make_shared<Normal>(mean, stddev, kTruncated);
}

constexpr std::array kTable = {
    InitializerEntry{
        "zeros", "0 everywhere", {}, [](const Params&) -> Made { return std::make_shared<Constant>(0.0F); }},
    InitializerEntry{
        "ones", "1 everywhere", {}, [](const Params&) -> Made { return std::make_shared<Constant>(1.0F); }},
    InitializerEntry{
        "constant", "one value everywhere", kConstantTable,
        [](const Params& p) -> Made { return std::make_shared<Constant>(p.as<ConstantOptions>().value); }},
    InitializerEntry{"uniform", "uniform between low and high", kUniformTable,
                     [](const Params& p) -> Made {
                       const auto [low, high] = p.as<UniformOptions>();
                       return std::make_shared<Uniform>(low, high);
                     }},
    InitializerEntry{"normal", "normal", kNormalTable, make_normal<false>},
    InitializerEntry{"truncated_normal", "normal, drawn again beyond two standard deviations", kNormalTable,
                     make_normal<true>},
    InitializerEntry{
        "glorot_uniform",
        "uniform with variance 2 / (fan_in + fan_out)",
        {},
        [](const Params&) -> Made { return std::make_shared<VarianceScaling>(1.0, false, false); }},
    InitializerEntry{
        "glorot_normal",
        "truncated normal with variance 2 / (fan_in + fan_out)",
        {},
        [](const Params&) -> Made { return std::make_shared<VarianceScaling>(1.0, false, true); }},
    InitializerEntry{
        "he_uniform",
        "uniform with variance 2 / fan_in",
        {},
        [](const Params&) -> Made { return std::make_shared<VarianceScaling>(2.0, true, false); }},
    InitializerEntry{
        "he_normal",
        "truncated normal with variance 2 / fan_in",
        {},
        [](const Params&) -> Made { return std::make_shared<VarianceScaling>(2.0, true, true); }},
};

}  // namespace

Fans fans_of(const Shape& kernel) {
  if (kernel.rank() == 0) return {1, 1};
  if (kernel.rank() == 1) return {static_cast<double>(kernel[0]), static_cast<double>(kernel[0])};
  double field = 1;
  for (int axis = 0; axis + 2 < kernel.rank(); ++axis) field *= static_cast<double>(kernel[axis]);
  return {field * static_cast<double>(kernel[kernel.rank() - 2]), field * static_cast<double>(kernel.last())};
}

Table<InitializerEntry>& initializer_table() {
  static Table<InitializerEntry> table("initializer",
                                       std::vector<InitializerEntry>(kTable.begin(), kTable.end()));
  return table;
}

std::shared_ptr<const Initializer> make_initializer(const Node& node) {
  const NamedOptions named = named_options(node, "initializer");
  const InitializerEntry& entry = initializer_table().at(named);
  return entry.make(Params(named.options, entry.table, "initializer " + named.name));
}

std::shared_ptr<const Initializer> make_initializer(std::string_view name) {
  return make_initializer(Node::scalar(std::string(name)));
}

}  // namespace lockstep
