// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "view/report/head_collector.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "io/sample_pictures.h"
#include "session/number_text.h"

namespace lockstep::report {

namespace {

constexpr std::int64_t kMostCurves = 20, kMostConfusion = 1000, kMostScores = 20'000'000;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr float kLeast = 1e-30F;  // of a probability, so that its logarithm is a number
constexpr std::size_t kPoints = 200;
constexpr std::int64_t kMostParity = 12, kMostPoints = 2000;  // plots of a head, and points of a plot

/// To a list with commas.
void add_number(std::string& list, double number) {
  if (!list.empty()) list += ", ";
  list += number_text(number);
}

double sigmoid(float logit) { return 1 / (1 + std::exp(-static_cast<double>(logit))); }

}  // namespace

HeadCollector::HeadCollector(const Head& head, int number, const TrueLabels& labels, const UsedDataset& data,
                             std::span<const std::string> names, std::int64_t mistakes)
    : most_(mistakes),
      values_(head.shape.num_elements()),
      classes_(head.shape.rank() == 0 ? 1 : head.shape.last()) {
  positions_ = values_ / classes_;
  PredictedHead described;
  labels.describe(number, described);
  result_.name = head.name;
  const PredictionKind kind = head.loss->predictions();
  left_out_ = head.loss->ignored();
  if (left_out_) ignored_ = *left_out_;
  if (!head.table.empty()) {
    form_ = Form::none;  // a row of numbers stands for the class
  } else if (kind == PredictionKind::classes && described.labels_are_indices &&
             described.labels == positions_) {
    form_ = Form::classes;
    result_.loss_name = "cross entropy";
  } else if (kind == PredictionKind::classes && !described.labels_are_indices &&
             described.labels == positions_ && positions_ > 1) {
    form_ = Form::classes;  // masks: classes as numbers
    result_.loss_name = "cross entropy";
  } else if (kind == PredictionKind::labels && !described.labels_are_indices && described.labels == values_) {
    form_ = Form::labels;
    result_.loss_name = "cross entropy";
  } else if (kind == PredictionKind::values && !described.labels_are_indices && described.labels == values_ &&
             head.loss->takes_labels()) {
    form_ = Form::values;
    result_.loss_name = "squared error";
  }
  result_.has_classes = form_ == Form::classes;
  if (head.table.empty() && static_cast<std::int64_t>(data->class_names().size()) == classes_)
    result_.class_names = data->class_names();
  result_.classes = classes_;
  if (form_ == Form::classes && classes_ <= kMostConfusion)
    result_.confusion.assign(static_cast<std::size_t>(classes_ * classes_), 0);
  const bool curves =
      (form_ == Form::classes && positions_ == 1) || (form_ == Form::labels && positions_ == 1);
  if (curves && classes_ <= kMostCurves && data.num_chosen() * classes_ <= kMostScores)
    scores_.resize(static_cast<std::size_t>(classes_));
  if (form_ != Form::values) return;
  const bool apart = values_ <= kMostParity;
  for (std::int64_t k = 0; k < (apart ? values_ : 1); ++k) {
    const bool named = apart && std::ssize(names) == values_;
    result_.parity.emplace_back(named          ? names[static_cast<std::size_t>(k)]
                                : values_ == 1 ? (head.name.empty() ? "value" : head.name)
                                : apart        ? fmt::format("output {}", k)
                                               : fmt::format("all {} outputs", values_));
  }
  every_ = std::max<std::int64_t>(1, data.num_chosen() * (apart ? 1 : values_) / kMostPoints);
}

std::string HeadCollector::name_of(std::int64_t index) const {
  const auto at = static_cast<std::size_t>(index);
  return index >= 0 && at < result_.class_names.size() ? result_.class_names[at] : std::to_string(index);
}

void HeadCollector::keep(std::vector<Found>& list, const Found& found, double Found::*by) const {
  if (std::ssize(list) == most_ && !(found.*by > list.back().*by)) return;
  const auto place = std::ranges::find_if(list, [&](const Found& one) { return found.*by > one.*by; });
  list.insert(place, found);
  if (std::ssize(list) > most_) list.pop_back();
}

void HeadCollector::add(std::span<const std::int64_t> samples, const PredictedRows& rows) {
  if (!usable()) return;
  const std::int64_t count = std::ssize(samples);
  for (std::int64_t i = 0; i < count; ++i) {
    const float* const outputs = rows.outputs.data() + i * values_;
    const float* const truth = rows.label_values.empty()
                                   ? nullptr
                                   : rows.label_values.data() + i * (std::ssize(rows.label_values) / count);
    const std::int64_t sample = samples[static_cast<std::size_t>(i)];
    if (form_ == Form::classes) add_classes(sample, outputs, rows, i);
    if (form_ == Form::labels) add_labels(sample, outputs, truth);
    if (form_ == Form::values) add_values(sample, outputs, truth);
  }
}

void HeadCollector::add_classes(std::int64_t sample, const float* probabilities, const PredictedRows& rows,
                                std::int64_t row) {
  Found found{.sample = sample, .truth = {}, .predicted = {}};
  std::int64_t counted = 0, wrong = 0;
  for (std::int64_t p = 0; p < positions_; ++p) {
    const auto at = static_cast<std::size_t>(row * positions_ + p);
    const std::int64_t truth = rows.label_indices.empty() ? static_cast<std::int64_t>(rows.label_values[at])
                                                          : rows.label_indices[at];
    if (truth == ignored_ || truth < 0 || truth >= classes_) continue;
    const float* const own = probabilities + p * classes_;
    const std::int64_t predicted = std::max_element(own, own + classes_) - own;
    ++counted;
    wrong += predicted != truth ? 1 : 0;
    found.loss -= std::log(static_cast<double>(std::max(own[truth], kLeast)));
    if (!result_.confusion.empty())
      ++result_.confusion[static_cast<std::size_t>(truth * classes_ + predicted)];
    if (positions_ > 1) continue;
    found.truth = name_of(truth);
    found.predicted = name_of(predicted);
    found.confidence = own[predicted];
    for (std::size_t c = 0; c < scores_.size(); ++c)
      scores_[c].push_back({own[c], static_cast<std::int64_t>(c) == truth});
  }
  if (counted == 0) return;
  ++result_.samples;
  found.loss /= static_cast<double>(counted);
  if (wrong == 0) return;
  ++result_.wrong;
  if (positions_ > 1) {
    found.predicted = fmt::format("{} of {} positions wrong ({:.1f} %)", wrong, counted,
                                  100.0 * static_cast<double>(wrong) / static_cast<double>(counted));
    found.confidence = kNone;
  }
  keep(worst_, found, &Found::loss);
  if (positions_ == 1) keep(confident_, found, &Found::confidence);
}

void HeadCollector::add_labels(std::int64_t sample, const float* logits, const float* truth) {
  Found found{.sample = sample, .truth = {}, .predicted = {}};
  bool wrong = false;
  for (std::int64_t k = 0; k < values_; ++k) {
    const bool is = truth[k] > 0.5F;
    if (!std::isfinite(truth[k])) continue;
    const double score = sigmoid(logits[k]), right = is ? score : 1 - score;
    found.loss -= std::log(std::max(right, static_cast<double>(kLeast))) / static_cast<double>(values_);
    const bool differs = is != (logits[k] > 0);
    if (k < kMostCurves && !scores_.empty())
      scores_[static_cast<std::size_t>(k)].push_back({static_cast<float>(score), is});
    if (!differs) continue;
    wrong = true;
    found.confidence = std::max(found.confidence, 1 - right);
    if (values_ > 24) continue;
    const std::string name = result_.class_names.empty() ? fmt::format("label {}", k) : name_of(k);
    found.truth += fmt::format("{}{}{}", found.truth.empty() ? "" : ", ", is ? "" : "not ", name);
    found.predicted += fmt::format("{}{}{}", found.predicted.empty() ? "" : ", ", is ? "not " : "", name);
  }
  ++result_.samples;
  if (!wrong) return;
  ++result_.wrong;
  keep(worst_, found, &Found::loss);
  keep(confident_, found, &Found::confidence);
}

void HeadCollector::add_values(std::int64_t sample, const float* values, const float* truth) {
  Found found{.sample = sample, .confidence = kNone, .truth = {}, .predicted = {}};
  for (std::int64_t k = 0; k < values_; ++k) {
    if (left_out_ && truth[k] == static_cast<float>(*left_out_)) continue;
    const double difference = static_cast<double>(values[k]) - static_cast<double>(truth[k]);
    found.loss += difference * difference / static_cast<double>(values_);
    const bool apart = std::ssize(result_.parity) == values_;
    const std::int64_t pair = apart ? result_.samples : result_.samples * values_ + k;
    result_.parity[static_cast<std::size_t>(apart ? k : 0)].add(truth[k], values[k], pair % every_ == 0);
  }
  ++result_.samples;
  if (!std::isfinite(found.loss)) return;
  if (values_ <= 6)
    for (std::int64_t k = 0; k < values_; ++k) {
      add_number(found.truth, truth[k]);
      add_number(found.predicted, values[k]);
    }
  keep(worst_, found, &Found::loss);
}

Mistake HeadCollector::mistake(const Found& found, const Dataset& data) const {
  Mistake mistake{.sample = found.sample,
                  .where = data.where(found.sample),
                  .truth = found.truth,
                  .predicted = found.predicted,
                  .loss = found.loss,
                  .confidence = found.confidence,
                  .png = {},
                  .features = {}};
  const Shape& shape = data.feature_shape();
  std::vector<float> features(static_cast<std::size_t>(shape.num_elements()));
  std::vector<float> scratch(static_cast<std::size_t>(data.scratch_values()));
  data.gather_features({&found.sample, 1}, {.place = found.sample}, features.data(), scratch.data());
  // Of several inputs, the first one that has a picture.
  std::size_t begin = 0;
  for (const NamedShape& input : data.input_shapes()) {
    const std::span<const float> own(features.data() + begin,
                                     static_cast<std::size_t>(input.shape.num_elements()));
    begin += own.size();
    if (!has_picture(input.shape)) continue;
    const auto [least, most] = std::ranges::minmax(own);
    mistake.png = png_of(picture_of(input.shape, own, least, most));
    return mistake;
  }
  constexpr std::size_t kShown = 8;
  for (std::size_t i = 0; i < std::min(kShown, features.size()); ++i)
    add_number(mistake.features, features[i]);
  if (features.size() > kShown) mistake.features += fmt::format(", … ({} values)", features.size());
  return mistake;
}

HeadPredictions HeadCollector::finish(const Dataset& data) {
  for (const Found& found : worst_) result_.worst.push_back(mistake(found, data));
  for (const Found& found : confident_)
    if (std::ranges::find(worst_, found.sample, &Found::sample) == worst_.end())
      result_.confident.push_back(mistake(found, data));
  for (std::size_t c = 0; c < scores_.size(); ++c) {
    // Of two classes, one curve says all.
    if (form_ == Form::classes && classes_ == 2 && c == 0) continue;
    const std::string name = result_.class_names.empty()
                                 ? fmt::format("{} {}", form_ == Form::classes ? "class" : "label", c)
                                 : name_of(static_cast<std::int64_t>(c));
    result_.curves.push_back(score_curve(name, std::move(scores_[c]), kPoints));
  }
  return std::move(result_);
}

}  // namespace lockstep::report
