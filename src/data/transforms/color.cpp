// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// color_jitter, grayscale, random_grayscale.
#include <algorithm>
#include <array>
#include <utility>

#include "data/transforms/color_math.h"
#include "data/transforms/family.h"

namespace lockstep {

namespace {

Grid color_image_of(const Shape& shape) {
  const Grid image = image_of(shape);
  if (image.channels != 1 && image.channels != 3)
    throw Error(ErrorKind::config, fmt::format("takes 1 or 3 channels, but the images have {} ({})",
                                               image.channels, shape.to_string()));
  return image;
}

class ColorJitter final : public Transform {
 public:
  struct Options {
    float brightness = 0, contrast = 0, saturation = 0, hue = 0, max = 0;
  };
  explicit ColorJitter(const Options& o)
      : amounts_{o.brightness, o.contrast, o.saturation, o.hue}, max_(o.max) {}
  Shape prepare(const Shape& shape) override {
    const Grid image = color_image_of(shape);
    image_ = {image.height * image.width, image.channels, max_};
    return shape;
  }
  bool in_place() const override { return true; }
  std::optional<ValueRange> takes() const override { return ValueRange{.most = max_}; }
  RangeEffect range_effect() const override { return RangeEffect::keeps; }
  void apply(const float* in, float* out, SampleRandom* random, float*) const override {
    if (in != out) std::copy_n(in, image_.pixels * image_.channels, out);
    if (random == nullptr) return;
    std::array<std::size_t, 4> order{0, 1, 2, 3};
    for (std::size_t i = 3; i > 0; --i)
      std::swap(order[i], order[static_cast<std::size_t>(random->below(static_cast<std::int64_t>(i) + 1))]);
    for (const std::size_t which : order) {
      const float amount = amounts_[which];
      if (amount == 0) continue;
      const float factor = random->uniform(std::max(0.0F, 1 - amount), 1 + amount);
      if (which == 0) change_brightness(out, image_, factor, out);
      if (which == 1) change_contrast(out, image_, factor, out);
      if (which == 2) change_saturation(out, image_, factor, out);
      if (which == 3) change_hue(out, image_, factor - 1, out);
    }
  }

 private:
  std::array<float, 4> amounts_;
  float max_;
  ColorImage image_{};
};

class Grayscale final : public Transform {
 public:
  struct Options {
    std::int64_t channels = 0;
  };
  explicit Grayscale(const Options& o) : channels_(o.channels) {}
  Shape prepare(const Shape& shape) override {
    const Grid image = image_of(shape);
    if (image.channels != 3)
      throw Error(ErrorKind::config, fmt::format("takes 3 channels, but the images have {} ({})",
                                                 image.channels, shape.to_string()));
    pixels_ = image.height * image.width;
    return {image.height, image.width, channels_};
  }
  RangeEffect range_effect() const override { return RangeEffect::keeps; }
  void apply(const float* in, float* out, SampleRandom*, float*) const override {
    for (std::int64_t i = 0; i < pixels_; ++i) out = std::fill_n(out, channels_, gray_of(in + 3 * i));
  }

 private:
  std::int64_t channels_, pixels_ = 0;
};

class RandomGrayscale final : public Transform {
 public:
  struct Options {
    double probability = 0;
  };
  explicit RandomGrayscale(const Options& o) : probability_(o.probability) {}
  Shape prepare(const Shape& shape) override {
    const Grid image = color_image_of(shape);
    image_ = {image.height * image.width, image.channels, 1};
    return shape;
  }
  bool in_place() const override { return true; }
  RangeEffect range_effect() const override { return RangeEffect::keeps; }
  void apply(const float* in, float* out, SampleRandom* random, float*) const override {
    const bool gray = random != nullptr && random->chance(probability_) && image_.channels == 3;
    if (!gray) {
      if (in != out) std::copy_n(in, image_.pixels * image_.channels, out);
      return;
    }
    for (std::int64_t i = 0; i < image_.pixels; ++i) std::fill_n(out + 3 * i, 3, gray_of(in + 3 * i));
  }

 private:
  double probability_;
  ColorImage image_{};
};

constexpr ParamSpec kJitter[] = {
    option<&ColorJitter::Options::brightness>("brightness", "0", between(0, 100),
                                              "factor uniform in [max(0, 1 - brightness), 1 + brightness]"),
    option<&ColorJitter::Options::contrast>("contrast", "0", between(0, 100),
                                            "the same for the distance from the mean of the grey image"),
    option<&ColorJitter::Options::saturation>("saturation", "0", between(0, 100),
                                              "the same for the distance from the grey image"),
    option<&ColorJitter::Options::hue>("hue", "0", between(0, 0.5),
                                       "shift of the hue, uniform in [-hue, hue] turns"),
    brightest_option<&ColorJitter::Options::max>()};
constexpr ParamSpec kGrayscale[] = {
    option<&Grayscale::Options::channels>("channels", "1", between(1, 3), "of the result, all equal")};
constexpr ParamSpec kRandomGrayscale[] = {option<&RandomGrayscale::Options::probability>(
    "probability", "0.1", between(0, 1), "of a grey image with equal channels")};

}  // namespace

extern const TransformEntry kColorJitterTransform = {
    "color_jitter", "brightness, contrast, saturation and hue, in random order; fixed form: none", kJitter,
    make_transform<ColorJitter>};
extern const TransformEntry kGrayscaleTransform = {"grayscale", "0.2989 red + 0.587 green + 0.114 blue",
                                                   kGrayscale, make_transform<Grayscale>};
extern const TransformEntry kRandomGrayscaleTransform = {
    "random_grayscale", "grey at random, with the same channels; fixed form: none", kRandomGrayscale,
    make_transform<RandomGrayscale>};

}  // namespace lockstep
