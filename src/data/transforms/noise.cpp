// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// random_noise: normal noise on every value.
#include <algorithm>
#include <array>

#include "data/transforms/family.h"

namespace lockstep {

namespace {

class RandomNoise final : public ValueTransform {
 public:
  struct Options {
    double stddev = 0, probability = 0;
  };
  explicit RandomNoise(const Options& o) : stddev_(o.stddev), probability_(o.probability) {}
  RangeEffect range_effect() const override { return RangeEffect::overshoots; }
  void apply(const float* in, float* out, SampleRandom* random, float*) const override {
    if (in != out) std::copy_n(in, count_, out);
    if (random == nullptr || !random->chance(probability_)) return;
    for (std::int64_t i = 0; i < count_; i += 2) {
      const std::uint32_t first = random->word();
      const std::array<double, 2> pair = philox_normal(first, random->word());
      out[i] += static_cast<float>(stddev_ * pair[0]);
      if (i + 1 < count_) out[i + 1] += static_cast<float>(stddev_ * pair[1]);
    }
  }

 private:
  double stddev_, probability_;
};

constexpr ParamSpec kTable[] = {
    option<&RandomNoise::Options::stddev>("stddev", kRequired, between(0, 1e30), "standard deviation"),
    option<&RandomNoise::Options::probability>("probability", "1", between(0, 1), "of a change")};

}  // namespace

extern const TransformEntry kRandomNoiseTransform = {
    "random_noise", "x + normal noise with mean 0; fixed form: none", kTable, make_transform<RandomNoise>};

}  // namespace lockstep
