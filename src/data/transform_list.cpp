// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/transform_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "config/named_options.h"
#include "config/option.h"
#include "data/reader_options.h"
#include "data/unit_change.h"
#include "data/whitening.h"

namespace lockstep {

namespace {
struct Written {
  Node transforms;
};
constexpr ParamSpec kTable[] = {
    option<&Written::transforms>(
        "transforms", "null", in_words("list, or null"),
        "Changes of the features, one after the other, after the reader's scale, offset, mean and std: see "
        "the transforms."),
    option<&WrittenWhitening::whiten>(
        "whiten", "null", in_words("pca or zca, alone or with options, or null"),
        "Before the transforms, features are made uncorrelated, with variance 1: see Whitening. The numbers "
        "are those of the training set, and the run keeps them.")};
}  // namespace

std::span<const ParamSpec> transforms_table() { return kTable; }

namespace {
/// With names of files as they are opened.
Node with_places(Node options, std::span<const ParamSpec> table, const std::string& base_directory) {
  for (auto& [key, value] : options.entries)
    for (const ParamSpec& option : table)
      if (option.name == key && option.change == Change::place && value.kind == Node::Kind::scalar &&
          !is_null(value))
        value.text = resolved_path(value.text, base_directory);
  return options;
}
}  // namespace

TransformList::TransformList(const Params& params, const std::string& base_directory) {
  const Node list = params.as<Written>().transforms;
  if (is_null(list)) return;
  if (list.kind != Node::Kind::list)
    throw Error(ErrorKind::config, "transforms is not a list", list.where,
                "Write one line per transform: `- random_flip: {axes: [horizontal]}`.");
  ErrorCollector mistakes;
  std::map<std::string, int> seen;
  for (const Node& item : list.items)
    mistakes.attempt([&] {
      const NamedOptions named = named_options(item, "transform");
      const TransformEntry& entry = transform_table().at(named);
      // The second transform of a kind draws other numbers than the first.
      const int number = ++seen[named.name];
      std::unique_ptr<Transform> transform = entry.make(Params(
          with_places(named.options, entry.table, base_directory), entry.table, "transform " + named.name));
      steps_.push_back({.transform = std::move(transform),
                        .name = named.name,
                        .where = named.where,
                        .purpose = philox_purpose(fmt::format("transform/{}/{}", named.name, number))});
    });
  mistakes.throw_if_any();
}

std::shared_ptr<const TextInfo> TransformList::text() const {
  std::shared_ptr<const TextInfo> found;
  for (const Step& step : steps_)
    if (auto text = step.transform->text(); text != nullptr) found = std::move(text);
  return found;
}

void TransformList::use_text(const std::shared_ptr<const TextInfo>& text) {
  if (text == nullptr) return;
  for (const Step& step : steps_) step.transform->use_text(text);
}

bool TransformList::keeps_units() const {
  return std::ranges::all_of(steps_, [](const Step& step) { return step.transform->keeps_units(); });
}

bool TransformList::moves_values() const {
  return std::ranges::any_of(steps_, [](const Step& step) { return step.transform->keeps_units(); });
}

std::string TransformList::way_back(std::vector<UnitChange>& changes) const {
  changes.clear();
  for (const Step& step : steps_) {
    if (step.transform->keeps_units()) continue;
    const auto* const own = dynamic_cast<const UnitTransform*>(step.transform.get());
    std::optional<UnitChange> change = own == nullptr ? std::nullopt : own->unit_change();
    if (!change) return step.name;
    changes.push_back(std::move(*change));
  }
  return {};
}

void TransformList::prepare(const Shape& shape) {
  shape_ = shape;
  largest_ = shape.num_elements();
  std::int64_t own = 0;
  for (Step& step : steps_) {
    step.count = shape_.num_elements();
    try {
      shape_ = step.transform->prepare(shape_);
    } catch (const Error& error) {
      if (!error.where().empty()) throw;
      throw Error(error.kind(), fmt::format("transform {}: {}", step.name, error.what_happened()), step.where,
                  error.advice());
    }
    // A list that needs no scratch memory gets none.
    in_place_ = in_place_ && step.transform->in_place() && step.transform->scratch_values() == 0;
    largest_ = std::max(largest_, shape_.num_elements());
    own = std::max(own, step.transform->scratch_values());
  }
  if (!steps_.empty()) scratch_values_ = 2 * largest_ + own;
  find_ranges();
}

/// Rounding, and a scale of 0.004 for 1 / 255, leave the range by less than the first tolerance. The second
/// one is for what interpolation and noise do; values that are centred at 0 lie further outside.
void TransformList::find_ranges() {
  constexpr float kRounding = 0.05F, kOvershoot = 0.5F;
  bool overshoots = false;
  for (Step& step : steps_) {
    step.range = step.transform->takes();
    if (step.range && std::isfinite(step.range->most))
      step.tolerance = (overshoots ? kOvershoot : kRounding) * step.range->most;
    overshoots = overshoots || step.transform->range_effect() == RangeEffect::overshoots;
  }
}

void TransformList::check_range(std::size_t index, const float* values) const {
  const Step& step = steps_[index];
  const float low = step.range->least - step.tolerance, high = step.range->most + step.tolerance;
  int outside = 0;
  for (std::int64_t i = 0; i < step.count; ++i)
    outside |= static_cast<int>(values[i] < low) | static_cast<int>(values[i] > high);
  if (outside == 0) return;
  const auto [least, most] = std::minmax_element(values, values + step.count);
  const std::string advice = advice_about_range(index, *least);
  if (advice.empty()) return;
  const std::string wanted = std::isfinite(step.range->most)
                                 ? fmt::format("from {} to {}, its max,", step.range->least, step.range->most)
                                 : fmt::format("from {} on", step.range->least);
  throw Error(ErrorKind::config,
              fmt::format("transform {} takes values {} and meets a sample with values from {:.4g} to "
                          "{:.4g}: what lies outside would be cut off",
                          step.name, wanted, *least, *most),
              step.where, advice);
}

/// Empty: the transform's definition says what becomes of such values.
std::string TransformList::advice_about_range(std::size_t index, float least) const {
  const Step& step = steps_[index];
  std::vector<std::string> movers;
  for (const RangeEffect effect : {RangeEffect::changes, RangeEffect::overshoots})
    for (std::size_t i = 0; i < index && (effect == RangeEffect::changes || movers.empty()); ++i)
      if (steps_[i].transform->range_effect() == effect) movers.push_back(steps_[i].name);
  if (!movers.empty())
    return fmt::format("Transforms act in the order in which they are written: move {} to a place after {}.",
                       fmt::join(movers, " and "), step.name);
  if (!before_.name.empty())
    return fmt::format("{} acts before all transforms: {}", before_.name, before_.advice);
  if (step.range->after_centring_only) return {};
  if (least < step.range->least - step.tolerance)
    return fmt::format(
        "The data have values below 0: give scale and offset of section data so that they begin with 0, or "
        "begin the list with `- clip: {{min: 0, max: {}}}`.",
        step.range->most);
  return "Give the brightest value of the data as max (max: 255), or scale them in section data (scale: "
         "0.00392156862745098).";
}

void TransformList::apply(float* values, float* out, const SampleKey* key, float* scratch) const {
  float* const own = scratch + 2 * largest_;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    const bool last = i + 1 == steps_.size();
    if (step.range && (key != nullptr || step.range->in_fixed_form)) check_range(i, values);
    float* to = scratch + (values == scratch ? largest_ : 0);
    if (step.transform->in_place()) to = values;
    if (last) to = out;
    if (key == nullptr) {
      step.transform->apply(values, to, nullptr, own);
    } else {
      SampleRandom random(*key, step.purpose);
      step.transform->apply(values, to, &random, own);
    }
    values = to;
  }
}

}  // namespace lockstep
