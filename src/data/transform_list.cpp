// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/transform_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "config/named_options.h"
#include "data/reader_options.h"

namespace lockstep {

namespace {
constexpr ParamSpec kTable[] = {
    {"transforms", ParamType::node, "null", in_words("list, or null"),
     "Changes of the features, one after the other, after the reader's scale, offset, mean and std: see the "
     "transforms."},
    {"whiten", ParamType::node, "null", in_words("pca or zca, alone or with options, or null"),
     "Before the transforms, features are made uncorrelated, with variance 1: see Whitening. The numbers are "
     "those "
     "of the training set, and the run keeps them."}};
}

std::span<const ParamSpec> transforms_table() { return kTable; }

namespace {
/// With names of files as they are opened.
Node with_places(Node options, std::span<const ParamSpec> table, const std::string& base_directory) {
  for (auto& [key, value] : options.entries)
    for (const ParamSpec& option : table)
      if (option.name == key && option.change == Change::place && value.kind == Node::Kind::scalar)
        value.text = resolved_path(value.text, base_directory);
  return options;
}
}  // namespace

TransformList::TransformList(const Params& params, const std::string& base_directory) {
  if (!params.has("transforms")) return;
  const Node& list = params.node("transforms");
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

void TransformList::prepare(const Shape& shape) {
  shape_ = shape;
  largest_ = shape.num_elements();
  std::int64_t own = 0;
  for (Step& step : steps_) {
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
}

void TransformList::apply(float* values, float* out, const SampleKey* key, float* scratch) const {
  float* const own = scratch + 2 * largest_;
  for (const Step& step : steps_) {
    const bool last = &step == &steps_.back();
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
