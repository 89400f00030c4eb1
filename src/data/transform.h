// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Transforms: what changes a sample between the data set and the model, such as crops, flips and noise. A
// transform is one file in transforms/: a class, its table of options, and an entry that transform_table.cpp
// lists.
//
// A sample is an array of float32 with its channels last: height x width x channels (an image), depth x
// height x width x channels (a volume), or a list of values.
//
// Random transforms act in training. Evaluation and prediction get their fixed form: a random crop becomes
// the crop of the centre, a flip leaves the sample as it is.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "config/params.h"
#include "config/table.h"
#include "core/philox.h"
#include "core/shape.h"

namespace lockstep {

struct TextInfo;

/// What the random numbers of a sample depend on: its place in the order of an epoch. A sample that an epoch
/// has twice gets other numbers each time.
struct SampleKey {
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
  std::int64_t place = 0;
};

/// The random numbers of one transform for one sample.
class SampleRandom {
 public:
  SampleRandom(const SampleKey& key, std::uint32_t purpose)
      : seed_(key.seed),
        purpose_(purpose ^ (static_cast<std::uint32_t>(key.place >> 32) * 0x9E3779B9U)),
        epoch_(static_cast<std::uint32_t>(key.epoch)),
        place_(static_cast<std::uint32_t>(key.place)) {}

  std::uint32_t word() {
    if (next_ % 4 == 0) block_ = philox_words(seed_, purpose_, epoch_, place_, next_ / 4);
    return block_[next_++ % 4];
  }
  /// A number in [0, 1), a multiple of 2^-24.
  float uniform() { return philox_uniform(word()); }
  float uniform(float low, float high) { return low + (high - low) * uniform(); }
  bool chance(double probability) { return static_cast<double>(uniform()) < probability; }
  /// 0 .. count-1; count < 2^32. The bias is below count / 2^32.
  std::int64_t below(std::int64_t count) {
    return static_cast<std::int64_t>((std::uint64_t{word()} * static_cast<std::uint64_t>(count)) >> 32);
  }
  double normal() {
    const std::uint32_t first = word();
    return philox_normal(first, word())[0];
  }

 private:
  std::uint64_t seed_;
  std::uint32_t purpose_, epoch_, place_;
  std::uint32_t next_ = 0;
  PhiloxBlock block_{};
};

/// The values that a transform is made for.
struct ValueRange {
  float least = 0, most = std::numeric_limits<float>::infinity();
  bool in_fixed_form = false;        ///< it acts outside training, too
  bool after_centring_only = false;  ///< its definition says what becomes of others, unless a step shifts all
};

/// What a transform does to values in a range that begins with 0.
enum class RangeEffect {
  keeps,
  overshoots,  ///< some leave it by a little: interpolation with negative weights, noise
  changes
};

class Transform {
 public:
  virtual ~Transform() = default;
  /// Announces the shape of the samples; returns their shape afterwards. Called once, before the rest. Throws
  /// Error(config) about an option that does not fit.
  virtual Shape prepare(const Shape& shape) = 0;
  /// apply() may have in == out.
  virtual bool in_place() const { return false; }
  /// Values are only moved, left out or interpolated along the axes before the last one: numbers of a channel
  /// stay numbers of it, in its unit.
  virtual bool keeps_units() const { return false; }
  /// Values that apply() may use in `scratch`.
  virtual std::int64_t scratch_values() const { return 0; }
  /// The tokenizer and the vocabulary, if the values become ids of tokens; otherwise null.
  virtual std::shared_ptr<const TextInfo> text() const { return nullptr; }
  /// Values outside this range would be cut off; a list of transforms refuses them. None: it takes all.
  virtual std::optional<ValueRange> takes() const { return {}; }
  virtual RangeEffect range_effect() const { return RangeEffect::changes; }
  /// Before prepare(): the tokenizer and vocabulary of a run, instead of those of a file.
  virtual void use_text(std::shared_ptr<const TextInfo> /*text*/) {}
  /// Transforms one sample. `random` is null outside training. Many threads call it, each with its own
  /// arrays; allocates nothing. Throws Error(data) without a place about values that it cannot take.
  virtual void apply(const float* in, float* out, SampleRandom* random, float* scratch) const = 0;
};

struct TransformEntry {
  std::string_view name, help;
  std::span<const ParamSpec> table;
  std::unique_ptr<Transform> (*make)(const Params&);
};

/// Lockstep's own transforms, then those that add() added.
Table<TransformEntry>& transform_table();

}  // namespace lockstep
