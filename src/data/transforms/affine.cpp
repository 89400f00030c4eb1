// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// random_affine: rotation, shift, scaling and shearing of images.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "data/transforms/affine_map.h"

namespace lockstep {

namespace {

std::array<double, 2> x_and_y(const Params& p, const ParamSpec& option) {
  const std::vector<double>& values = p.reals(option.name);
  if (values.empty() || values.size() > 2)
    throw p.error(option.name, "must be one number or two", "For example: 0.1, or [0.1, 0].");
  return {values.front(), values.back()};
}
std::array<float, 2> shears(const Params& p, const ParamSpec& option) {
  const std::array<float, 2> shears = low_and_high(p, option);
  for (const float shear : shears)
    if (std::abs(shear) >= 90) throw p.error(option.name, "must be between -90 and 90 degrees");
  return shears;
}

class RandomAffine final : public Transform {
 public:
  struct Options {
    std::array<float, 2> degrees{}, scale{}, shear{};
    std::array<double, 2> translate{};
    double probability = 0;
    Interpolation interpolation{};
    float fill = 0;
  };
  bool keeps_units() const override { return true; }
  explicit RandomAffine(const Options& o) : o_(o) {}
  Shape prepare(const Shape& shape) override {
    image_ = image_of(shape);
    return shape;
  }
  RangeEffect range_effect() const override { return effect_of_fill(o_.fill); }
  void apply(const float* in, float* out, SampleRandom* random, float*) const override {
    if (random == nullptr || !random->chance(o_.probability)) {
      std::copy_n(in, image_.num_elements(), out);
      return;
    }
    AffineParts parts;
    parts.degrees = random->uniform(o_.degrees[0], o_.degrees[1]);
    parts.scale = random->uniform(o_.scale[0], o_.scale[1]);
    parts.shear_x = std::tan(random->uniform(o_.shear[0], o_.shear[1]) * std::numbers::pi / 180);
    parts.shift_x = shift(*random, o_.translate[0], image_.width);
    parts.shift_y = shift(*random, o_.translate[1], image_.height);
    apply_affine(in, image_, parts, o_.interpolation, o_.fill, out);
  }

 private:
  /// Whole pixels, as torchvision's RandomAffine.
  static double shift(SampleRandom& random, double share, std::int64_t size) {
    const double most = share * static_cast<double>(size);
    return std::round((2 * static_cast<double>(random.uniform()) - 1) * most);
  }

  Options o_;
  Grid image_;
};

using Options = RandomAffine::Options;
constexpr ParamSpec kTable[] = {
    option_as<low_and_high, &Options::degrees>(ParamType::reals, "degrees", "[0, 0]",
                                               between(-360, 360).note("two"),
                                               "least and most rotation, counter-clockwise"),
    option_as<x_and_y, &Options::translate>(ParamType::reals, "translate", "0",
                                            between(0, 1).note("one, or x and y"),
                                            "most shift to each side, as a share of the size; whole pixels"),
    option_as<low_and_high, &Options::scale>(ParamType::reals, "scale", "[1, 1]",
                                             above(0).up_to(1000).note("two"),
                                             "least and most scale; above 1: larger"),
    option_as<shears, &Options::shear>(ParamType::reals, "shear", "[0, 0]", between(-90, 90).note("two"),
                                       "least and most horizontal shear, in degrees"),
    option<&Options::probability>("probability", "1", between(0, 1), "of a change"),
    interpolation_option<&Options::interpolation>(),
    beyond_option<&Options::fill>()};

}  // namespace

extern const TransformEntry kRandomAffineTransform = {
    "random_affine",
    "rotation, scale, shear and shift of an image about its centre, each uniform in its range; fixed form: "
    "none",
    kTable, make_transform<RandomAffine>};

}  // namespace lockstep
