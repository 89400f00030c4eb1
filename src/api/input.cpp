// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "api/input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "config/params.h"
#include "core/device.h"
#include "core/error.h"
#include "data/program_input.h"
#include "data/sample_store.h"

namespace lockstep {

namespace {

constexpr const char* kReader = "program";

Error wrong(const std::string& name, std::string what, std::string advice) {
  return Error(ErrorKind::data, std::move(what), fmt::format("input {}", name), std::move(advice));
}

DatasetParts parts_of(const std::string& name, const SampleArrays& samples) {
  const std::int64_t values = samples.shape.num_elements();
  const auto given = static_cast<std::int64_t>(samples.features.size());
  if (values < 1 || given == 0 || given % values != 0)
    throw wrong(
        name, fmt::format("{} values are no whole number of samples of {}", given, samples.shape.to_string()),
        "Check the shape, and the number of values.");
  DatasetParts parts;
  parts.size = given / values;
  parts.feature_shape = samples.shape;
  parts.features = Buffer(cpu_device(), sizeof(float) * samples.features.size());
  std::memcpy(parts.features.as<float>().data(), samples.features.data(),
              sizeof(float) * samples.features.size());
  if (!samples.classes.empty() && !samples.targets.empty())
    throw wrong(name, "has class indices and targets", "Give one of them.");
  if (!samples.classes.empty()) {
    parts.num_label_columns = 1;
    parts.label_indices = samples.classes;
  } else if (!samples.targets.empty()) {
    parts.num_label_columns = std::max<std::int64_t>(samples.target_columns, 1);
    parts.label_rows = samples.targets;
  }
  const std::size_t labels = samples.classes.size() + samples.targets.size();
  if (labels != static_cast<std::size_t>(parts.size * parts.num_label_columns))
    throw wrong(name, fmt::format("{} labels for {} samples", labels, parts.size),
                "Give one class index, or target_columns targets, per sample.");
  return parts;
}

class ComputedStore final : public SampleStore {
 public:
  explicit ComputedStore(ComputedSamples samples) : samples_(std::move(samples)) {}

  void read(std::int64_t first, std::int64_t count, const SampleRoom& to) override {
    const std::int64_t values = samples_.shape.num_elements();
    for (std::int64_t i = 0; i < count; ++i)
      samples_.fill(first + i, static_cast<float*>(to.features) + i * values,
                    to.label_indices != nullptr ? to.label_indices + i : nullptr,
                    to.label_rows != nullptr ? to.label_rows + i * samples_.target_columns : nullptr);
  }
  bool decodes_samples() const override { return true; }

 private:
  ComputedSamples samples_;
};

DatasetParts parts_of(const std::string& name, const ComputedSamples& samples) {
  if (samples.size < 1 || samples.shape.num_elements() < 1 || samples.target_columns < 0 || !samples.fill)
    throw wrong(name, "has no samples", "Give size, shape and fill.");
  if (samples.has_classes && samples.target_columns > 0)
    throw wrong(name, "has class indices and targets", "Give one of them.");
  DatasetParts parts;
  parts.size = samples.size;
  parts.feature_shape = samples.shape;
  parts.num_label_columns = samples.has_classes ? 1 : samples.target_columns;
  parts.label_kind = samples.has_classes          ? LabelKind::indices
                     : samples.target_columns > 0 ? LabelKind::rows
                                                  : LabelKind::none;
  parts.store = std::make_shared<ComputedStore>(samples);
  return parts;
}

template <typename Samples>
Choice program_reader_of(const std::string& name, Samples samples) {
  const auto kept = std::make_shared<const Samples>(std::move(samples));
  set_program_input(name, [name, kept] { return parts_of(name, *kept); });
  return {kReader, options_map({{"input", name}})};
}

/// Options of both sets under `train` and `eval`, which have one reader.
void add_sets(Node& section, const Choice& train, const Choice* eval) {
  if (eval != nullptr && eval->name != train.name)
    throw Error(
        ErrorKind::config,
        fmt::format("the training input is read by {}, the evaluation input by {}", train.name, eval->name),
        "", "Read both by one reader.");
  set_option(section, "format", train.name);
  set_option(section, "train", is_null(train.options) ? options_map({}) : train.options);
  if (eval != nullptr) set_option(section, "eval", is_null(eval->options) ? options_map({}) : eval->options);
}

}  // namespace

Input::Input(Choice reader) : reader_(std::move(reader)) {}

Input Input::arrays(const std::string& name, SampleArrays samples) {
  return {program_reader_of(name, std::move(samples))};
}
Input Input::computed(const std::string& name, ComputedSamples samples) {
  return {program_reader_of(name, std::move(samples))};
}

Input Input::named(std::vector<std::pair<std::string, Input>> inputs,
                   std::vector<std::pair<std::string, Input>> targets) {
  if (inputs.empty()) throw Error(ErrorKind::config, "samples without an input", "", "Name one or more.");
  Input input;
  input.inputs_ = std::move(inputs);
  input.targets_ = std::move(targets);
  return input;
}

Input& Input::with(std::string_view option, const OptionValue& value) {
  if (inputs_.empty())
    set_option(reader_.options, option, value);
  else
    for (auto& [name, input] : inputs_) input.with(option, value);
  return *this;
}

Node Input::data_section(const Input* train, const Input* eval) {
  const Input& first = train != nullptr ? *train : *eval;
  Node section = options_map({});
  section.kind = Node::Kind::map;
  if (first.inputs_.empty()) {
    if (eval != nullptr && !eval->inputs_.empty())
      throw Error(ErrorKind::config, "the evaluation input has several inputs, the training input has one",
                  "", "Give both sets the same inputs.");
    add_sets(section, first.reader_, eval != nullptr ? &eval->reader_ : nullptr);
    return section;
  }
  // The keys of the section are those of the first input; each input then has its own.
  set_option(section, "format", first.inputs_.front().second.reader_.name);
  const auto add_named = [&](std::string_view key, const std::vector<std::pair<std::string, Input>>& sets,
                             const std::vector<std::pair<std::string, Input>>* of_eval) {
    if (sets.empty()) return;
    Node entries;
    for (const auto& [name, input] : sets) {
      const Choice* other = nullptr;
      if (of_eval != nullptr) {
        const auto found = std::ranges::find(*of_eval, name, &std::pair<std::string, Input>::first);
        if (found == of_eval->end())
          throw Error(ErrorKind::config, fmt::format("the evaluation input has no '{}'", name), "",
                      "Give both sets the same inputs.");
        other = &found->second.reader_;
      }
      Node entry;
      add_sets(entry, input.reader_, other);
      set_option(entries, name, entry);
    }
    set_option(section, key, entries);
  };
  add_named("inputs", first.inputs_, eval != nullptr ? &eval->inputs_ : nullptr);
  add_named("targets", first.targets_, eval != nullptr ? &eval->targets_ : nullptr);
  if (eval != nullptr)
    set_option(section, "eval", [] {
      Node map;
      map.kind = Node::Kind::map;
      return map;
    }());
  return section;
}

}  // namespace lockstep
