// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// random_flip and random_symmetry: mirror images and right-angle rotations.
#include <algorithm>
#include <array>
#include <bit>

#include "data/transforms/family.h"

namespace lockstep {

namespace {

using Axes = std::array<int, 3>;

/// out(z, y, x) = in at the place whose coordinate along axis from[i] is that of `out` along axis i, counted
/// from the end if bit i of `mirrored` is set.
void permute(const float* in, const Grid& from, const Axes& source, unsigned mirrored, float* out) {
  const std::array<std::int64_t, 3> steps{from.height * from.width * from.channels,
                                          from.width * from.channels, from.channels};
  std::array<std::int64_t, 3> size{}, step{};
  const float* start = in;
  for (std::size_t i = 0; i < 3; ++i) {
    size[i] = from.size(source[i]);
    step[i] = steps[static_cast<std::size_t>(source[i])];
    if ((mirrored >> i & 1U) == 0) continue;
    start += (size[i] - 1) * step[i];
    step[i] = -step[i];
  }
  for (std::int64_t z = 0; z < size[0]; ++z)
    for (std::int64_t y = 0; y < size[1]; ++y) {
      const float* row = start + z * step[0] + y * step[1];
      if (step[2] == from.channels) {
        out = std::copy_n(row, size[2] * from.channels, out);
        continue;
      }
      for (std::int64_t x = 0; x < size[2]; ++x, row += step[2])
        for (std::int64_t c = 0; c < from.channels; ++c) *out++ = row[c];
    }
}

using Flips = std::array<bool, 3>;

Flips flips_of(const Params& p, const ParamSpec& option) {
  constexpr std::array<std::string_view, 3> kNames{"depth", "vertical", "horizontal"};
  Flips flips{};
  for (const std::string& name : p.strings(option.name)) {
    const auto found = std::ranges::find(kNames, name);
    if (found == kNames.end())
      throw p.error(option.name, fmt::format("names an unknown axis '{}'", name),
                    "The axes are horizontal (left and right), vertical (top and bottom) and depth.");
    flips[static_cast<std::size_t>(found - kNames.begin())] = true;
  }
  if (flips == Flips{}) throw p.error(option.name, "is an empty list", "Name an axis: [horizontal].");
  return flips;
}

class RandomFlip final : public Transform {
 public:
  struct Options {
    Flips axes{};
    double probability = 0;
  };
  bool keeps_units() const override { return true; }
  explicit RandomFlip(const Options& o) : o_(o) {}
  Shape prepare(const Shape& shape) override {
    grid_ = grid_of(shape);
    if (o_.axes[0] && shape.rank() == 3)
      throw Error(ErrorKind::config,
                  fmt::format("flips the depth, but the samples are images ({})", shape.to_string()), "",
                  "Only volumes have a depth.");
    return shape;
  }
  RangeEffect range_effect() const override { return RangeEffect::keeps; }
  void apply(const float* in, float* out, SampleRandom* random, float*) const override {
    unsigned mirrored = 0;
    if (random != nullptr)
      for (unsigned axis = 0; axis < 3; ++axis)
        if (o_.axes[axis] && random->chance(o_.probability)) mirrored |= 1U << axis;
    permute(in, grid_, {0, 1, 2}, mirrored, out);
  }

 private:
  Options o_;
  Grid grid_;
};

/// The symmetries of the square (8) and the cube (48): a permutation of the axes, and a mirror image along
/// some of them. Half of them are rotations: those with an even number of mirrors and swaps.
class RandomSymmetry final : public Transform {
 public:
  struct Options {
    bool rotations_only = false;
  };
  bool keeps_units() const override { return true; }
  explicit RandomSymmetry(const Options& o) : rotations_only_(o.rotations_only) {}
  Shape prepare(const Shape& shape) override {
    grid_ = grid_of(shape);
    const bool volume = shape.rank() == 4;
    if (grid_.height != grid_.width || (volume && grid_.depth != grid_.height))
      throw Error(ErrorKind::config, fmt::format("takes squares and cubes, not {}", shape.to_string()), "",
                  "Crop or resize before, or use random_flip.");
    Axes axes{0, 1, 2};
    do {
      if (!volume && axes[0] != 0) continue;
      const bool odd = ((axes[0] > axes[1]) + (axes[0] > axes[2]) + (axes[1] > axes[2])) % 2 != 0;
      for (unsigned mirrored = 0; mirrored < 8; ++mirrored) {
        if (!volume && (mirrored & 1U) != 0) continue;
        const bool reflects = odd != (std::popcount(mirrored) % 2 != 0);
        if (!rotations_only_ || !reflects) all_.push_back({axes, mirrored});
      }
    } while (std::ranges::next_permutation(axes).found);
    return shape;
  }
  RangeEffect range_effect() const override { return RangeEffect::keeps; }
  void apply(const float* in, float* out, SampleRandom* random, float*) const override {
    const std::int64_t chosen = random != nullptr ? random->below(static_cast<std::int64_t>(all_.size())) : 0;
    const Symmetry& symmetry = all_[static_cast<std::size_t>(chosen)];
    permute(in, grid_, symmetry.axes, symmetry.mirrored, out);
  }

 private:
  struct Symmetry {
    Axes axes;
    unsigned mirrored;
  };
  bool rotations_only_;
  Grid grid_;
  std::vector<Symmetry> all_;  ///< the first one changes nothing
};

constexpr ParamSpec kFlip[] = {
    option_as<flips_of, &RandomFlip::Options::axes>(ParamType::strings, "axes", "[horizontal]",
                                                    in_words("horizontal, vertical, depth"),
                                                    "which axes; each is flipped or not by itself"),
    option<&RandomFlip::Options::probability>("probability", "0.5", between(0, 1), "of a flip, per axis")};
constexpr ParamSpec kSymmetry[] = {option<&RandomSymmetry::Options::rotations_only>(
    "rotations_only", "false", {}, "without mirror images: 4 of the 8 of a square, 24 of the 48 of a cube")};

}  // namespace

extern const TransformEntry kRandomFlipTransform = {
    "random_flip", "mirror image along some axes of an image or a volume; fixed form: none", kFlip,
    make_transform<RandomFlip>};
extern const TransformEntry kRandomSymmetryTransform = {
    "random_symmetry",
    "one of the 8 symmetries of a square image or the 48 of a cubic volume, all equally likely; fixed form: "
    "none",
    kSymmetry, make_transform<RandomSymmetry>};

}  // namespace lockstep
