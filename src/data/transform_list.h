// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The option `transforms`: transforms that are applied one after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "config/params.h"
#include "data/transform.h"

namespace lockstep {

struct UnitChange;

/// The options `transforms` and `whiten` (whitening.h) of a data set.
std::span<const ParamSpec> transforms_table();

/// A stage before all transforms that shifts values away from 0: the normalisation of a reader, whitening.
struct CentringStage {
  std::string name;    ///< "data.normalize"
  std::string advice;  ///< what to do instead, for a transform after it that needs values from 0 on
};

class TransformList {
 public:
  TransformList() = default;
  /// Reads the option: a list of names, each alone or with its options, or null. Files that it names are
  /// relative to `base_directory`. Throws Error(config) with all mistakes.
  explicit TransformList(const Params& params, const std::string& base_directory = {});

  /// Before prepare(): transforms take these words instead of those of their files; null: they do not.
  void use_text(const std::shared_ptr<const TextInfo>& text);
  /// Announces the shape of the samples. Throws Error(config) if a transform cannot take its input.
  void prepare(const Shape& shape);
  /// What values have gone through when they come here.
  void come_after(CentringStage stage) { before_ = std::move(stage); }
  bool empty() const { return steps_.empty(); }
  /// The TextInfo of the last transform that has one; null: none has.
  std::shared_ptr<const TextInfo> text() const;
  /// The shape of a sample after all transforms.
  const Shape& shape() const { return shape_; }
  /// All samples are changed where they are, and no scratch memory is needed.
  bool in_place() const { return in_place_; }
  /// Transform::keeps_units() of all of them.
  bool keeps_units() const;
  /// Transform::keeps_units() of one of them: values may have other places.
  bool moves_values() const;
  /// After prepare(): what those that change values do to them, the first one first. Returns the name of the
  /// first transform without a way back; empty: there is one through all of them.
  std::string way_back(std::vector<UnitChange>& changes) const;
  /// Values that apply() uses in `scratch`; 0 if the list is empty.
  std::int64_t scratch_values() const { return scratch_values_; }
  /// Transforms one sample. `values` lies in the first scratch_values() values of `scratch`, at its start,
  /// or, if in_place(), in `out`. `key` null: the fixed form of random transforms. Many threads call it, each
  /// with its own arrays. Throws Error(config) where a step meets values outside the range that it takes, and
  /// says which step to move.
  void apply(float* values, float* out, const SampleKey* key, float* scratch) const;

 private:
  struct Step {
    std::unique_ptr<Transform> transform;
    std::string name, where;
    std::uint32_t purpose;
    std::optional<ValueRange> range = {};  ///< that it takes
    float tolerance = 0;                   ///< as much as values may lie outside
    std::int64_t count = 0;                ///< values of its input
  };
  void find_ranges();
  void check_range(std::size_t step, const float* values) const;
  std::string advice_about_range(std::size_t step, float least) const;

  std::vector<Step> steps_;
  Shape shape_;
  bool in_place_ = true;
  std::int64_t largest_ = 0;  ///< values of the largest sample between two transforms
  std::int64_t scratch_values_ = 0;
  CentringStage before_;
};

}  // namespace lockstep
