// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/new/opened_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "config/yaml_node.h"
#include "core/error.h"
#include "data/bad_records.h"
#include "data/data_options.h"
#include "data/reader_dataset.h"
#include "data/text_info.h"
#include "tools/new/label_form.h"
#include "tools/new/usual_names.h"
#include "tools/samples/sample_statistics.h"

namespace lockstep {

namespace {

constexpr std::int64_t kMostSamples = 20000;  ///< whose labels are looked at
constexpr std::int64_t kMostClasses = 100000;

/// Mean and deviation of labels that are numbers.
void add_label_moments(NewSamples& form, const LabelStatistics& labels) {
  form.label_mean = labels.values.mean;
  form.label_deviation = labels.values.deviation;
  if (labels.counts.empty()) return;  // otherwise they are whole
  double count = 0, sum = 0, squares = 0;
  for (const auto& [label, samples] : labels.counts) {
    const auto value = static_cast<double>(label), times = static_cast<double>(samples);
    count += times;
    sum += times * value;
    squares += times * value * value;
  }
  form.label_mean = sum / count;
  form.label_deviation = std::sqrt(std::max(0.0, squares / count - form.label_mean * form.label_mean));
}

/// Some of all samples, evenly spread: also of those that are for evaluation.
std::vector<std::int64_t> some_of(const Dataset& data) {
  const std::int64_t size = data.size(), step = std::max<std::int64_t>(1, size / kMostSamples);
  std::vector<std::int64_t> samples;
  for (std::int64_t i = 0; i < size; i += step) samples.push_back(i);
  return samples;
}

void add_values(const Dataset& data, std::vector<float>& values) {
  const auto columns = static_cast<std::size_t>(data.num_label_columns());
  for (const std::int64_t sample : some_of(data)) {
    values.resize(values.size() + columns);
    data.gather_labels({&sample, 1}, values.data() + values.size() - columns);
  }
}

/// The sets that a guess means.
struct OpenSets {
  UsedDataset train, eval;  ///< eval: null where it is a part of the same samples
};

/// Evaluation files may lack labels or columns: Kaggle's test.csv.
void leave_eval_out(DataGuess& guess, const std::string& why) {
  std::string name = "the evaluation set";
  for (const Setting& setting : guess.eval)
    if (setting.key == "path" || setting.key == "features") name = setting.value;
  guess.assumed.push_back(fmt::format(
      "{} is not used for evaluation ({}): a part of the training set is held out instead", name, why));
  guess.common.insert(guess.common.begin(), guess.train.begin(), guess.train.end());
  guess.train.clear();
  guess.eval.clear();
  guess.has_eval = false;
}

/// Why one cannot be used for the other; empty: it can.
std::string difference(const OpenSets& sets) {
  if (!sets.eval) return "";
  const Dataset &train = *sets.train, &eval = *sets.eval;
  if (!(train.feature_shape() == eval.feature_shape()))
    return fmt::format("its samples are {}, and those for training {}", eval.feature_shape().to_string(),
                       train.feature_shape().to_string());
  if (train.num_label_columns() != eval.num_label_columns() || train.label_kind() != eval.label_kind())
    return "its labels are of another kind";
  if (train.class_names() != eval.class_names()) return "its classes are others";
  return "";
}

OpenSets opened(DataGuess& guess, double held_out, const std::string& folder) {
  const Node root = parse_yaml(data_section(guess, held_out), "lockstep new");
  DataOptions options = data_options(*root.find("data"));
  try_data_files(options, folder);
  OpenSets sets{.train = open_training_set(options, folder), .eval = {}};
  if (!guess.has_eval || guess.is_continuous_text || guess.format == "text_tsv") return sets;
  std::string why;
  try {
    sets.eval = open_evaluation_set(options, folder);
    why = difference(sets);
  } catch (const Error& error) {
    if (!guess.may_lack_eval) throw;
    why = error.what_happened();
  }
  if (why.empty()) return sets;
  if (!guess.may_lack_eval)
    throw Error(
        ErrorKind::data, fmt::format("the evaluation set does not fit: {}", why), "lockstep new",
        "Name the training data with --features and --labels; the evaluation set is then a part of them.");
  leave_eval_out(guess, why);
  return opened(guess, held_out, folder);
}

/// Pictures as PyTorch and MATLAB have them: colours are the first axis of a sample.
bool has_channels_first(const DataGuess& guess, const Shape& sample) {
  constexpr std::int64_t kLeastSide = 8, kMostChannels = 4;
  const bool may_say_so = guess.format == "hdf5" || guess.format == "npy";
  return may_say_so && sample.rank() == 3 && sample[0] != 2 && sample[0] <= kMostChannels &&
         sample[1] >= kLeastSide && sample[2] >= kLeastSide &&
         std::ranges::find(guess.common, "layout", &Setting::key) == guess.common.end();
}

void look_at_labels(DataGuess& guess, NewSamples& form, const OpenSets& sets, const DataQuestion& question) {
  std::vector<float> values;
  add_values(*sets.train, values);
  if (sets.eval) add_values(*sets.eval, values);
  const bool of_classes = guess.format == "idx" || guess.format == "webdataset";
  const LabelForm labels = label_form(values, form.label_columns,
                                      {.integers = sets.train->label_kind() == LabelKind::indices,
                                       .classes_by_name = of_classes || names_classes(guess.predicts),
                                       .as_classes = question.classes,
                                       .as_numbers = question.numbers});
  if (!labels.doubt.empty()) guess.assumed.push_back(labels.doubt);
  guess.is_measured = labels.task == LabelTask::numbers;
  guess.has_many_labels = labels.task == LabelTask::many_labels;
  if (labels.task == LabelTask::classes) form.classes = labels.classes;
}

void check_classes(const NewSamples& form) {
  if (form.classes < 2)
    throw Error(ErrorKind::data, "all labels are the same class", "lockstep new",
                "Give data of at least two classes, or --labels NAME for other labels.");
  if (form.classes > kMostClasses)
    throw Error(ErrorKind::data, fmt::format("a label is {}: these are no classes", form.classes - 1),
                "lockstep new", "Give --task numbers to predict numbers, or --labels NAME for other labels.");
}

/// Class indices that a table or a folder has decided on.
void count_classes(NewSamples& form, const OpenSets& sets) {
  form.classes = std::ssize(sets.train->class_names());
  if (form.classes > 0) return;
  for (const UsedDataset* const set : {&sets.train, &sets.eval})
    if (*set)
      for (const auto& [label, count] : label_statistics(**set, some_of(**set)).counts)
        form.classes = std::max(form.classes, label + 1);
}

NewSamples form_of(DataGuess& guess, const DataQuestion& question, double held_out,
                   const std::string& folder) {
  const OpenSets sets = opened(guess, held_out, folder);
  const UsedDataset& data = sets.train;
  if (has_channels_first(guess, data->feature_shape())) {
    guess.common.push_back(
        {"layout", "channels_first", "colours are the first axis of a sample in the file"});
    guess.assumed.push_back(
        fmt::format("samples of {} are pictures whose first axis has the channels; otherwise: "
                    "remove layout: channels_first",
                    data->feature_shape().to_string()));
    return form_of(guess, question, held_out, folder);
  }
  for (std::string& note : bad_records_notes(*data)) guess.notes.push_back(std::move(note));
  NewSamples form{.shape = data->feature_shape(), .samples = data.num_chosen()};
  guess.has_no_channels = !guess.is_text && data->single() != nullptr &&
                          has_no_channels(form.shape, data->single()->feature_dtype() == DType::u8);
  if (guess.has_no_channels)
    guess.notes.push_back(fmt::format("samples of {} are taken as {} of one channel, which a layer adds",
                                      form.shape.to_string(),
                                      form.shape.rank() == 3 ? "volumes" : "pictures"));
  form.label_columns = data->num_label_columns();
  if (data->text() != nullptr) form.vocabulary = data->text()->vocabulary.size();
  if (guess.is_bytes) form.vocabulary = 256;
  if (data->label_kind() == LabelKind::none)
    throw Error(ErrorKind::data, "the data have no labels", "lockstep new", "Name them with --labels.");
  if (guess.has_many_labels || guess.is_continuous_text) return form;
  guess.is_measured = guess.is_measured || question.numbers;
  if (!guess.knows_labels && data->class_names().empty())
    look_at_labels(guess, form, sets, question);
  else if (!guess.is_measured && data->label_kind() == LabelKind::indices)
    count_classes(form, sets);
  if (guess.has_many_labels) return form;
  if (form.classes == 0 && (guess.is_measured || data->label_kind() != LabelKind::indices)) {
    add_label_moments(form, label_statistics(*data, spread_samples(data, kMostSamples)));
    return form;
  }
  check_classes(form);
  return form;
}

}  // namespace

NewSamples opened_form(DataGuess& guess, const DataQuestion& question, double held_out,
                       const std::string& folder) {
  const DataGuess before = guess;
  try {
    return form_of(guess, question, held_out, folder);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data || (guess.format != "images" && guess.format != "webdataset")) throw;
  }
  // Images that cannot be read are left out, if they are few.
  guess = before;
  guess.common.push_back({"bad_records", "skip", "images that cannot be read are left out,"});
  guess.common.push_back({"max_bad_records", "0.05", "as long as they are at most this share"});
  return form_of(guess, question, held_out, folder);
}

}  // namespace lockstep
