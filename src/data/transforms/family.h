// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Shared by the transforms: their options, and the forms of samples.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "config/option.h"
#include "core/error.h"
#include "core/shape.h"
#include "data/transform.h"

namespace lockstep {

/// A factory for TransformEntry::make: T is constructed from T::Options, whose members the table binds
/// (config/option.h), and from Params, too, if it refuses some of them; or from nothing.
template <typename T>
std::unique_ptr<Transform> make_transform(const Params& params) {
  if constexpr (requires(const Params& p) { T(p.as<typename T::Options>(), p); })
    return std::make_unique<T>(params.as<typename T::Options>(), params);
  else if constexpr (requires { typename T::Options; })
    return std::make_unique<T>(params.as<typename T::Options>());
  else
    return std::make_unique<T>();
}

/// A transform of each value by itself, or of each pixel, that keeps the shape.
class ValueTransform : public Transform {
 public:
  Shape prepare(const Shape& shape) override {
    count_ = shape.num_elements();
    return shape;
  }
  bool in_place() const override { return true; }

 protected:
  std::int64_t count_ = 0;  ///< values of a sample
};

/// Of a transform that writes `fill` here and there, and other values of the sample elsewhere.
inline RangeEffect effect_of_fill(float fill) {
  return fill == 0 ? RangeEffect::keeps : RangeEffect::changes;
}

/// The range of the values of images begins with 0.
template <auto... kPath>
constexpr ParamSpec brightest_option() {
  return option<kPath...>("max", "1", above(0).up_to(1e30), "the brightest value; the darkest is 0");
}

/// An image (depth 1) or a volume.
struct Grid {
  std::int64_t depth = 1, height = 1, width = 1, channels = 1;

  std::int64_t size(int axis) const { return axis == 0 ? depth : axis == 1 ? height : width; }
  std::int64_t num_elements() const { return depth * height * width * channels; }
};

/// Throws Error(config) unless the shape is that of an image.
Grid image_of(const Shape& shape);
/// Throws Error(config) unless the shape is that of an image or a volume.
Grid grid_of(const Shape& shape);
/// The shape of a grid with the rank of `like`.
Shape shape_of(const Grid& grid, const Shape& like);

/// An option of one number for all spatial axes or one per axis, read for the axes of `shape`: [depth,
/// height, width], with depth `no_depth` for images. Throws Error(config).
std::array<std::int64_t, 3> per_axis(const std::vector<std::int64_t>& values, const Shape& shape,
                                     std::int64_t no_depth, std::string_view option);

// For option_as() of ParamType::reals. They throw Error(config).
/// At least one number.
std::vector<float> floats(const Params& params, const ParamSpec& option);
/// Two numbers, low <= high.
std::array<float, 2> low_and_high(const Params& params, const ParamSpec& option);

}  // namespace lockstep
