// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "api/input.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/local_samples.h"
#include "api/placed_samples.h"
#include "config/params.h"
#include "core/error.h"
#include "data/program_input.h"
#include "data/sample_store.h"

namespace lockstep {

namespace {

constexpr const char* kReader = "program";

class ComputedStore final : public SampleStore {
 public:
  ComputedStore(std::string name, ComputedSamples samples)
      : name_(std::move(name)), samples_(std::move(samples)) {}

  void read(std::int64_t first, std::int64_t count, const SampleRoom& to) override {
    const std::int64_t values = samples_.shape.num_elements();
    for (std::int64_t i = 0; i < count; ++i)
      fill_sample(name_, samples_, first + i, static_cast<float*>(to.features) + i * values,
                  to.label_indices != nullptr ? to.label_indices + i : nullptr,
                  to.label_rows != nullptr ? to.label_rows + i * samples_.target_columns : nullptr);
  }
  bool decodes_samples() const override { return true; }

 private:
  std::string name_;
  ComputedSamples samples_;
};

DatasetParts parts_of(const std::string& name, const ComputedSamples& samples) {
  check_computed(name, samples, false);
  DatasetParts parts;
  static_cast<StoredForm&>(parts) = form_of(samples);
  parts.store = std::make_shared<ComputedStore>(name, samples);
  return parts;
}

Choice program_reader(const std::string& name) { return {kReader, options_map({{"input", name}})}; }

Choice program_reader_of(const std::string& name, const PlacedPointer& samples) {
  set_program_input(name, [samples] { return parts_of(samples); });
  return program_reader(name);
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
  return {program_reader_of(name, placed(name, std::move(samples)))};
}
Input Input::from_memory(const std::string& name, MemorySamples samples) {
  return {program_reader_of(name, placed(name, samples))};
}
Input Input::computed(const std::string& name, ComputedSamples samples) {
  const auto kept = std::make_shared<const ComputedSamples>(std::move(samples));
  set_program_input(name, [name, kept] { return parts_of(name, *kept); });
  return {program_reader(name)};
}

Input Input::local(const std::string& name, SampleArrays samples) {
  Input input(program_reader(name));
  input.local_ = std::make_shared<const LocalSamples>(
      name, [name, mine = placed(name, std::move(samples), true)] { return mine; });
  return input;
}
Input Input::local(const std::string& name, MemorySamples samples) {
  Input input(program_reader(name));
  input.local_ =
      std::make_shared<const LocalSamples>(name, [mine = placed(name, samples, true)] { return mine; });
  return input;
}
Input Input::local(const std::string& name, ComputedSamples samples) {
  check_computed(name, samples, true);
  Input input(program_reader(name));
  input.local_ = std::make_shared<const LocalSamples>(
      name, [name, samples = std::move(samples)] { return placed(name, samples); });
  return input;
}

std::vector<std::shared_ptr<const LocalSamples>> Input::local_samples() const {
  std::vector<std::shared_ptr<const LocalSamples>> all;
  if (local_ != nullptr) all.push_back(local_);
  for (const auto* const inputs : {&inputs_, &targets_})
    for (const auto& [name, input] : *inputs)
      for (auto& local : input.local_samples()) all.push_back(std::move(local));
  return all;
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
