// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/summaries/input_summary.h"

#include <fmt/format.h>

#include <algorithm>

#include "comm/tree.h"
#include "config/option.h"
#include "core/log.h"
#include "core/plain_nan.h"
#include "io/sample_pictures.h"
#include "session/hook_context.h"
#include "session/summaries/picture_data.h"
#include "session/summaries/sample_labels.h"
#include "session/summaries/summary_part.h"
#include "train/executor.h"
#include "train/trainer.h"

namespace lockstep {

namespace {

using Options = InputSummary::Options;
constexpr ParamSpec kTable[] = {
    option<&Options::every_steps>("every_steps", "500", between(1, 1e12),
                                  "After the first step, and at multiples of so many.", Change::free),
    option<&Options::count>("count", "16", between(1, 256),
                            "So many samples, or as many as a microshard has.", Change::free),
    option<&Options::sample_rate>(
        "sample_rate", "null", between(1, 1e7, "Hz").or_null(),
        "Inputs of shape frames, or frames x channels, are sounds with so many frames a second.",
        Change::free),
};

constexpr std::int64_t kPerRow = 8;

}  // namespace

InputSummary::InputSummary(const Options& options, const Params& params)
    : SummaryHook("summary.inputs", HookScope::chief_only),
      options_(options),
      where_(params.where()),
      timer_(options.every_steps, {}) {}

std::vector<ShownInput> InputSummary::inputs_of(const Dataset& data) const {
  std::vector<ShownInput> inputs = shown_inputs(data, options_.sample_rate.has_value());
  if (options_.sample_rate &&
      std::ranges::none_of(inputs, [](const ShownInput& one) { return one.as == ShownInput::As::sound; })) {
    std::string shapes;
    for (const ShownInput& one : inputs) shapes += (shapes.empty() ? "" : ", ") + text_of(one);
    throw Error(ErrorKind::config, fmt::format("summary.inputs.sample_rate: no input is a sound: {}", shapes),
                where_, "Sounds are frames, or frames x at most 8 channels. Leave sample_rate out.");
  }
  return inputs;
}

RecordedText InputSummary::recorded(const Run& run) const {
  std::string shown;
  for (const ShownInput& input : inputs_of(run.train)) shown += (shown.empty() ? "" : ", ") + text_of(input);
  return {.when = from_the_first_text(options_.every_steps),
          .events = fmt::format("up to {} samples ({}), with labels and predictions", options_.count, shown)};
}

void InputSummary::begin(HookContext& context) {
  run_ = &context.trainer().context();
  data_ = &context.trainer().dataset();
  inputs_ = inputs_of(*data_);
  if (context.trainer().executor().own_shards().size() == 0)
    log_warning("summary.inputs shows nothing: there are more ranks than microshards, and rank 0 has none");
}

void InputSummary::after_create_session(HookContext& context) { context.trainer().remove_observer(*this); }

void InputSummary::before_run(HookContext& context) {
  if (!due(context.global_step() + 1)) return;
  samples_ = 0;
  batch_ = context.trainer().batch();
  outputs_.assign(static_cast<std::size_t>(run_->heads.size()), {});
  labels_.assign(outputs_.size(), {});
  context.trainer().add_observer(*this);
}

void InputSummary::fetched(const Microshard& microshard, const Lane&, const float* features) {
  if (microshard.shard != 0) return;
  samples_ = std::min(microshard.n, options_.count);
  first_sample_ = microshard.first_sample;
  features_.resize(static_cast<std::size_t>(samples_ * run_->graph.features().num_elements()));
  run_->device.copy_to_host(features_.data(), features, features_.size() * sizeof(float));
}

void InputSummary::lost(const Microshard& microshard, const Lane&, std::span<const HeadSums>,
                        std::span<const LossStage::Place> places, const LabelBlock& block) {
  if (microshard.shard != 0) return;
  for (int i = 0; i < run_->heads.size(); ++i) {
    const Head& head = run_->heads[i];
    if (!is_classifier(head) && !is_multi_label(head) && !has_few_values(head)) continue;
    const auto number = static_cast<std::size_t>(i);
    outputs_[number].resize(static_cast<std::size_t>(samples_ * elements_of(head)));
    run_->device.copy_to_host(outputs_[number].data(), places[number].outputs,
                              outputs_[number].size() * sizeof(float));
    if (block.data == nullptr) continue;
    const Labels labels = run_->heads.labels_of(i, block, microshard.n);
    for (std::int64_t n = 0; n < samples_; ++n) {
      std::string text;
      if (is_multi_label(head) && labels.rows != nullptr) {
        const std::span row(labels.rows + n * labels.columns, static_cast<std::size_t>(labels.columns));
        labels_[number].push_back(marked_text(*data_, run_->heads.size() == 1, row, 0.5F));
        continue;
      }
      for (std::int64_t c = 0; c < std::min<std::int64_t>(labels.columns, kMostShownValues); ++c) {
        const auto at = n * labels.columns + c;
        text += (text.empty() ? "" : ", ") + (labels.indices != nullptr
                                                  ? std::to_string(labels.indices[at])
                                                  : fmt::format("{:.4g}", plain_nan(labels.rows[at])));
      }
      labels_[number].push_back(text + (labels.columns > kMostShownValues ? ", ..." : ""));
    }
  }
}

/// A table of Markdown: a line per sample.
std::string InputSummary::table_of(HookContext& context) const {
  const Dataset& data = context.trainer().dataset();
  std::vector<std::int64_t> records(static_cast<std::size_t>(samples_));
  context.trainer().plan().samples(batch_.epoch, batch_.first + first_sample_, records);
  std::string head = "| | record |", line = "|---|---|";
  std::vector<const ShownInput*> columns;
  for (const ShownInput& input : inputs_) {
    if (input.as == ShownInput::As::picture || input.as == ShownInput::As::sound) continue;
    columns.push_back(&input);
    head += fmt::format(" {} |", markdown_cell(input.input.name.empty() ? "input" : input.input.name));
    line += "---|";
  }
  const bool named = run_->heads.size() == 1;
  for (const Head& of : run_->heads) {
    head += fmt::format(" {0}label | {0}prediction |", of.name.empty() ? "" : markdown_cell(of.name + " "));
    line += "---|---|";
  }
  std::string text = head + "\n" + line + "\n";
  for (std::int64_t n = 0; n < samples_; ++n) {
    text +=
        fmt::format("| {} | {} |", n + 1, markdown_cell(data.where(records[static_cast<std::size_t>(n)])));
    for (const ShownInput* const input : columns)
      text += fmt::format(" {} |", markdown_cell(input->as == ShownInput::As::words
                                                     ? words_text(*input->text, values_of(*input, n))
                                                     : numbers_text(values_of(*input, n))));
    for (int i = 0; i < run_->heads.size(); ++i) {
      const Head& of = run_->heads[i];
      const auto number = static_cast<std::size_t>(i);
      std::string label = labels_[number].empty() ? "" : labels_[number][static_cast<std::size_t>(n)];
      std::string prediction;
      if (!outputs_[number].empty()) {
        const auto row = std::span(outputs_[number])
                             .subspan(static_cast<std::size_t>(n * elements_of(of)),
                                      static_cast<std::size_t>(elements_of(of)));
        if (is_classifier(of)) {
          prediction = class_text(data, named, std::ranges::max_element(row) - row.begin());
          if (!label.empty() && label.find_first_not_of("0123456789") == std::string::npos)
            label = class_text(data, named, std::stoll(label));
        } else if (is_multi_label(of)) {
          prediction = marked_text(data, named, row, 0);  // before the sigmoid
        } else {
          for (const float value : row)
            prediction += fmt::format("{}{:.4g}", prediction.empty() ? "" : ", ", plain_nan(value));
        }
      }
      text += fmt::format(" {} | {} |", markdown_cell(label), markdown_cell(prediction));
    }
    text += "\n";
  }
  return text;
}

std::span<const float> InputSummary::values_of(const ShownInput& input, std::int64_t sample) const {
  const std::int64_t width = run_->graph.features().num_elements();
  return std::span(features_).subspan(static_cast<std::size_t>(sample * width + input.first),
                                      static_cast<std::size_t>(input.input.shape.num_elements()));
}

std::string InputSummary::tag_of(const ShownInput& input) const {
  return inputs_.size() > 1 ? "inputs/" + input.input.name : "inputs";
}

SummaryValue InputSummary::sheet_of(const ShownInput& input) const {
  float least = values_of(input, 0)[0], largest = least;
  for (std::int64_t n = 0; n < samples_; ++n) {
    const auto [low, high] = std::ranges::minmax(values_of(input, n));
    least = std::min(least, low);
    largest = std::max(largest, high);
  }
  std::vector<std::vector<Picture>> rows;
  for (std::int64_t n = 0; n < samples_; ++n) {
    if (n % kPerRow == 0) rows.emplace_back();
    rows.back().push_back(picture_of(input.input.shape, values_of(input, n), least, largest));
  }
  return {tag_of(input), picture_data(contact_sheet(rows))};
}

void InputSummary::add_sounds(const ShownInput& input, std::vector<SummaryValue>& values) const {
  std::vector<float> samples;
  for (std::int64_t n = 0; n < samples_; ++n) {
    const std::span<const float> one = values_of(input, n);
    samples.insert(samples.end(), one.begin(), one.end());
  }
  for (SummaryValue& sound :
       sound_values(tag_of(input), input.input.shape, std::move(samples), *options_.sample_rate))
    values.push_back(std::move(sound));
}

void InputSummary::after_run(HookContext& context, const StepResult& result) {
  if (!due(result.step)) return;
  context.trainer().remove_observer(*this);
  if (samples_ == 0 || !context.reports().has_events()) return;
  std::vector<SummaryValue> values;
  for (const ShownInput& input : inputs_) {
    if (input.as == ShownInput::As::picture) values.push_back(sheet_of(input));
    if (input.as == ShownInput::As::sound) add_sounds(input, values);
  }
  values.push_back(text_value("inputs/samples", table_of(context)));
  context.reports().summary(RunReports::Split::train, result.step, std::move(values));
}

extern const SummaryPart kInputSummary = {
    "inputs",
    "Samples as the model sees them, as pictures, sounds, words or numbers, with their labels and "
    "predictions.",
    kTable, make_summary<InputSummary>};

}  // namespace lockstep
