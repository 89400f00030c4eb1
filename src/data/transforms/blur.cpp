// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// blur, random_blur: convolution of images and volumes with a Gaussian, axis by axis, in float32. The weights
// are exp(-d^2 / (2 sigma^2)) at whole distances d up to the radius, divided by their sum, as torchvision's
// GaussianBlur has them. Beyond the borders lies the mirror image without the border itself.
#include <algorithm>
#include <array>
#include <cmath>

#include "data/transforms/family.h"

namespace lockstep {

namespace {

/// The place in [0, size) that stands for place `at`, as in numpy.pad's "reflect".
std::int64_t mirrored(std::int64_t at, std::int64_t size) {
  if (size == 1) return 0;
  const std::int64_t period = 2 * (size - 1), within = ((at % period) + period) % period;
  return within < size ? within : period - within;
}

/// out[o][i][k] = the sum over j of weights[j] * in[o][i + j - radius][k], for `size` values of i and `inner`
/// of k.
void convolve(const float* in, std::int64_t outer, std::int64_t size, std::int64_t inner,
              const float* weights, std::int64_t radius, float* out) {
  for (std::int64_t o = 0; o < outer; ++o, in += size * inner)
    for (std::int64_t i = 0; i < size; ++i, out += inner) {
      std::fill_n(out, inner, 0.0F);
      for (std::int64_t j = -radius; j <= radius; ++j) {
        const float weight = weights[j + radius];
        const float* const from = in + mirrored(i + j, size) * inner;
        for (std::int64_t k = 0; k < inner; ++k) out[k] += weight * from[k];
      }
    }
}

std::int64_t radius_of(double sigma) { return static_cast<std::int64_t>(std::ceil(3 * sigma)); }

class Blurring : public Transform {
 public:
  bool keeps_units() const override { return true; }
  RangeEffect range_effect() const override { return RangeEffect::keeps; }
  Shape prepare(const Shape& shape) override {
    grid_ = grid_of(shape);
    return shape;
  }
  std::int64_t scratch_values() const override {
    return grid_.num_elements() + 2 * (kernel_ ? *kernel_ / 2 : radius_of(most_)) + 1;
  }

 protected:
  /// `kernel`: values of the kernel; nothing: as many as reach three sigma.
  Blurring(double most, std::optional<std::int64_t> kernel) : most_(most), kernel_(kernel) {}

  void blur(const float* in, double sigma, float* out, float* scratch) const {
    const std::int64_t radius = kernel_ ? *kernel_ / 2 : radius_of(sigma);
    float* const weights = scratch + grid_.num_elements();
    double sum = 0;
    const auto weight = [&](std::int64_t distance) {
      const double in_sigmas = static_cast<double>(distance) / sigma;
      return std::exp(-0.5 * in_sigmas * in_sigmas);
    };
    for (std::int64_t j = -radius; j <= radius; ++j) sum += weight(j);
    for (std::int64_t j = -radius; j <= radius; ++j)
      weights[j + radius] = static_cast<float>(weight(j) / sum);
    const auto [depth, height, width, channels] = grid_;
    const float* from = in;
    if (depth > 1) {
      convolve(in, 1, depth, height * width * channels, weights, radius, out);
      from = out;
    }
    convolve(from, depth, height, width * channels, weights, radius, scratch);
    convolve(scratch, depth * height, width, channels, weights, radius, out);
  }
  void copy(const float* in, float* out) const { std::copy_n(in, grid_.num_elements(), out); }

 private:
  double most_;
  std::optional<std::int64_t> kernel_;
  Grid grid_;
};

/// Null, or an odd number.
std::optional<std::int64_t> odd_number(const Params& params, const ParamSpec& option) {
  if (!params.has(option.name)) return std::nullopt;
  const std::int64_t number = params.integer(option.name);
  if (number % 2 == 0)
    throw params.error(option.name, fmt::format("{} is even", number),
                       "A kernel has a value in its middle: 3, 5, 7.");
  return number;
}

class Blur final : public Blurring {
 public:
  struct Options {
    double sigma = 0;
    std::optional<std::int64_t> kernel;
  };
  explicit Blur(const Options& o) : Blurring(o.sigma, o.kernel), sigma_(o.sigma) {}
  void apply(const float* in, float* out, SampleRandom*, float* scratch) const override {
    blur(in, sigma_, out, scratch);
  }

 private:
  double sigma_;
};

class RandomBlur final : public Blurring {
 public:
  struct Options {
    std::array<float, 2> sigma{};
    std::optional<std::int64_t> kernel;
    double probability = 0;
  };
  explicit RandomBlur(const Options& o) : Blurring(static_cast<double>(o.sigma[1]), o.kernel), o_(o) {}
  void apply(const float* in, float* out, SampleRandom* random, float* scratch) const override {
    if (random == nullptr || !random->chance(o_.probability)) return copy(in, out);
    blur(in, static_cast<double>(random->uniform(o_.sigma[0], o_.sigma[1])), out, scratch);
  }

 private:
  Options o_;
};

constexpr OptionRange kSigma = above(0).up_to(1000, "pixels");
template <auto... kPath>
constexpr ParamSpec kernel_option() {
  return option_as<odd_number, kPath...>(ParamType::integer, "kernel", "null",
                                         between(1, 4095, "pixels").or_null(),
                                         "size of the kernel, an odd number; null: 2 ceil(3 sigma) + 1");
}
constexpr ParamSpec kBlur[] = {
    option<&Blur::Options::sigma>("sigma", "1", kSigma, "standard deviation of the Gaussian"),
    kernel_option<&Blur::Options::kernel>()};
constexpr ParamSpec kRandomBlur[] = {
    option_as<low_and_high, &RandomBlur::Options::sigma>(
        ParamType::reals, "sigma", "[0.1, 2]", kSigma.note("two"),
        "least and most standard deviation of the Gaussian, which is uniform between them"),
    kernel_option<&RandomBlur::Options::kernel>(),
    option<&RandomBlur::Options::probability>("probability", "0.5", between(0, 1), "of a change")};

}  // namespace

extern const TransformEntry kBlurTransform = {"blur", "an image or a volume smoothed by a Gaussian", kBlur,
                                              make_transform<Blur>};
extern const TransformEntry kRandomBlurTransform = {"random_blur",
                                                    "blur with a random standard deviation; fixed form: none",
                                                    kRandomBlur, make_transform<RandomBlur>};

}  // namespace lockstep
