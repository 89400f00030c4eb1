// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep data`: what the data sets of a configuration hold, before and after the transforms, how fast they
// are read, and what looks wrong. One process, no model, no run.
#include "driver/commands/data.h"
#include "core/process_environment.h"
#include "driver/command_line/command.h"
#include "driver/command_line/common_options.h"
#include "io/print_result.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/log.h"
#include "core/timer.h"
#include "data/data_options.h"
#include "data/normalization.h"
#include "data/reader_dataset.h"
#include "data/reader_table.h"
#include "data/stored_chunks.h"
#include "data/value_notes.h"
#include "data/whitening.h"
#include "io/output_file.h"
#include "io/sample_pictures.h"
#include "run/sections/config.h"
#include "run/setup/data_trial.h"
#include "run/setup/run_size.h"
#include "session/terminal.h"
#include "tools/samples/data_advice.h"
#include "tools/samples/feature_names.h"
#include "tools/samples/sample_statistics.h"
#include "tools/samples/set_report.h"
#include "tools/samples/storage_advice.h"

namespace lockstep {

namespace {

constexpr std::size_t kSheetColumns = 8, kSheetRows = 4;
/// The most samples on which a stage is measured.
constexpr std::int64_t kMeasured = 2000;

/// The number of samples to look at if nothing is said: kSamples, or fewer large ones, of kBytes together.
std::int64_t enough(const ReaderDataset& data) {
  constexpr std::int64_t kSamples = 10000, kBytes = 2'000'000'000;
  const std::int64_t bytes =
      data.stored_shape().num_elements() * static_cast<std::int64_t>(size_in_bytes(data.feature_dtype()));
  return std::clamp<std::int64_t>(kBytes / bytes, 16, kSamples);
}

/// Samples per second of one thread.
double rate(const Dataset& data, std::span<const std::int64_t> samples, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(data.feature_shape().num_elements()));
  std::vector<float> scratch(static_cast<std::size_t>(data.scratch_values()));
  constexpr double kSeconds = 0.3;
  const Timer timer;
  std::int64_t done = 0;
  for (std::int64_t epoch = 0; timer.seconds() < kSeconds; ++epoch)
    for (const std::int64_t sample : samples) {
      data.gather_features({&sample, 1}, {.seed = seed, .epoch = epoch, .place = sample}, values.data(),
                           scratch.data());
      if (++done % 16 == 0 && timer.seconds() > kSeconds) break;
    }
  return static_cast<double>(done) / timer.seconds();
}

/// One set, or one input or target of it, as it is looked at.
class Look {
 public:
  /// `set` has all inputs and targets; `number` counts in sets_of().
  Look(const DataArguments& arguments, const Config& config, bool training, const UsedDataset& set,
       std::size_t number)
      : arguments_(arguments),
        seed_(config.general.seed),
        base_directory_(config.base_directory),
        training_(training),
        is_target_(number >= num_inputs(config.data)),
        input_(*sets_of(config.data)[number]),
        with_labels_(set->single() != nullptr || set->labels_come_from(number)),
        data_(*set->parts()[number].data),
        chosen_(set.num_chosen()),
        samples_(spread_samples(set, arguments.samples.value_or(enough(data_)))) {}

  const ReaderDataset& data() const { return data_; }
  std::span<const std::int64_t> samples() const { return samples_; }

  const SetReport& report() const { return report_; }

  void look(DataFindings& findings) {
    const Params& params = training_ ? input_.train : *input_.eval;
    report_ = {.training = training_,
               .name = input_.name,
               .is_target = is_target_,
               .first = samples_.front(),
               .chosen = chosen_,
               .looked_at = std::ssize(samples_),
               .notes = value_notes(input_.format, params, base_directory_),
               .reads_labels = with_labels_};
    const bool labelled = with_labels_ && data_.label_kind() != LabelKind::none;
    if (labelled)
      report_.labels = label_statistics(data_, samples_);
    else if (is_target_)
      if (LabelStatistics values = target_statistics(data_, samples_); !values.counts.empty())
        report_.labels = std::move(values);
    data_ = data_.with_transforms(TransformList(), training_);
    report_.names = feature_names(data_);
    report_.stored = feature_statistics(data_, samples_, seed_);
    stored_ = pictures_of(report_.stored);
    report_.samples_per_second = rate(data_, measured(), seed_);
    if (TransformList list(params, base_directory_); !list.empty()) {
      data_ = data_.with_transforms(std::move(list), training_);
      report_.transformed = feature_statistics(data_, samples_, seed_);
      transformed_ = pictures_of(*report_.transformed);
      report_.transformed_per_second = rate(data_, measured(), seed_);
    }
    if (data_.text() == nullptr && !is_target_)
      report_.transformed ? findings.add_values(training_, *report_.transformed, {})
                          : findings.add_values(training_, report_.stored, report_.names);
    if (labelled) findings.add_labels(training_, *report_.labels);
    if (const auto chunks = stored_chunks(input_.format, params, base_directory_)) {
      if (chunks->unpack_seconds > 0) report_.unpacked_per_second = chunks->samples_per_second();
      findings.add(chunk_advice(*chunks, data_.stream() != nullptr, rate_of_one()));
    } else {
      findings.add_reading(training_, data_);
    }
    if (const auto files = find_reader(input_.format).files)
      findings.add(file_system_advice(files(params, base_directory_),
                                      [](const std::string& path) { return file_system_of(path); }));
  }

  /// The first pictures in the terminal, if there is one.
  void show() const {
    if (stored_.empty() || arguments_.show == 0) return;
    const auto width = terminal_width_of(stdout, process_environment);
    if (!width && !arguments_.show) return;
    const char* const colors = std::getenv("COLORTERM");
    const bool color = width && colors != nullptr &&
                       (std::string_view(colors) == "truecolor" || std::string_view(colors) == "24bit");
    const std::size_t count = std::min(stored_.size(), static_cast<std::size_t>(arguments_.show.value_or(4)));
    for (const auto* pictures : {&stored_, &transformed_})
      if (!pictures->empty())
        print_as_is(terminal_pictures(std::span(*pictures).first(count), width ? width() : 100, color) +
                    "\n");
  }

  /// Rows of the contact sheet: samples as they are stored, and below them the same, transformed.
  std::vector<std::vector<Picture>> pictures() const {
    std::vector<std::vector<Picture>> rows;
    for (std::size_t i = 0; i < stored_.size(); i += kSheetColumns)
      for (const auto* pictures : {&stored_, &transformed_}) {
        if (pictures->empty()) continue;
        const auto first = pictures->begin() + static_cast<std::ptrdiff_t>(i);
        rows.emplace_back(first,
                          first + static_cast<std::ptrdiff_t>(std::min(kSheetColumns, stored_.size() - i)));
      }
    return rows;
  }

 private:
  /// Samples per second of one thread from memory: the same sample, again and again.
  double rate_of_one() const { return rate(data_, std::span(samples_).first(1), seed_); }

  std::span<const std::int64_t> measured() const {
    return std::span(samples_).first(std::min<std::size_t>(samples_.size(), kMeasured));
  }

  std::vector<Picture> pictures_of(const FeatureStatistics& values) const {
    if (!has_picture(data_.feature_shape())) return {};
    const std::size_t count = std::min(kSheetColumns * kSheetRows, samples_.size());
    std::vector<float> features(static_cast<std::size_t>(data_.feature_shape().num_elements()));
    std::vector<float> scratch(static_cast<std::size_t>(data_.scratch_values()));
    std::vector<Picture> pictures;
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t sample = samples_[i * samples_.size() / count];
      data_.gather_features({&sample, 1}, {.seed = seed_, .place = sample}, features.data(), scratch.data());
      pictures.push_back(picture_of(data_.feature_shape(), features, static_cast<float>(values.all.least),
                                    static_cast<float>(values.all.most)));
    }
    return pictures;
  }

  const DataArguments& arguments_;
  std::uint64_t seed_;
  const std::string& base_directory_;
  bool training_;
  bool is_target_;
  const DataInput& input_;
  bool with_labels_;
  ReaderDataset data_;
  std::int64_t chosen_;
  std::vector<std::int64_t> samples_;
  SetReport report_;
  std::vector<Picture> stored_, transformed_;
};

/// An input or target of the training set with the numbers of its samples.
ReaderDataset fitted(const ReaderDataset& part, const SampleChoice* choice) {
  ReaderDataset set = part;
  if (set.stages().conversion().normalize_by() != NormalizeBy::none)
    set = set.fitted({.normalization = std::make_shared<const Normalization>(
                          computed_normalization(set, choice, cores_per_rank(1)))});
  if (set.stages().whitening().options().used())
    set = set.fitted(
        {.whitening = std::make_shared<const Whitening>(computed_whitening(set, choice, cores_per_rank(1)))});
  return set;
}

/// The set, normalised and whitened. `training`: the training set, if this is the evaluation set.
UsedDataset fitted(const UsedDataset& set, const Dataset* training) {
  const std::vector<DatasetPart> parts = set->parts();
  std::vector<std::shared_ptr<const ReaderDataset>> made;
  for (std::size_t i = 0; i < parts.size(); ++i)
    made.push_back(std::make_shared<const ReaderDataset>(
        training != nullptr ? parts[i].data->fitted(training->parts()[i].data->stages().numbers())
                            : fitted(*parts[i].data, set.use().choice.get())));
  return {set->with_parts(std::move(made)), set.use()};
}

void declare(CommandOptions& options, DataArguments& arguments) {
  add_target(options, "CONFIG", arguments.config, "Configuration file (YAML)");
  options
      .add("--samples", arguments.samples,
           "Samples of each set to look at, evenly spread; default: 10000, or 2 GB of them")
      .type_name("N")
      .check(whole_number(1, kMostSteps));
  options
      .add("--png", arguments.png,
           "Write pictures of samples: as they are stored, and below them transformed")
      .type_name("FILE")
      .check(not_empty("a path"));
  options
      .add("--show", arguments.show, "Pictures to draw in the terminal; default: 4 in a terminal, else none")
      .type_name("N")
      .check(whole_number(0, 16));
  add_json(options, arguments.json);
  add_overrides(options, arguments.overrides);
}

int run(const DataArguments& arguments) {
  Config config = load_data_config(arguments.config, arguments.overrides);
  try_data_on_chief(config);
  DataFindings findings;
  std::vector<std::vector<Picture>> rows;
  std::vector<std::string> reports;
  const auto look_at = [&](const UsedDataset& set, bool training) {
    std::vector<std::int64_t> samples;
    for (std::size_t i = 0; i < sets_of(config.data).size(); ++i) {
      Look look(arguments, config, training, set, i);
      look.look(findings);
      if (arguments.json) {
        reports.push_back(json_text(look.data(), look.report()));
      } else {
        if (!training || i > 0) print_lines("\n");
        print_text(look.data(), look.report(), look.samples());
        look.show();
      }
      for (std::vector<Picture>& row : look.pictures()) rows.push_back(std::move(row));
      if (i == 0) samples.assign(look.samples().begin(), look.samples().end());
    }
    return samples;
  };
  const UsedDataset train = fitted(open_training_set(config.data, config.base_directory), nullptr);
  const std::vector<std::int64_t> of_train = look_at(train, true);
  if (UsedDataset eval = open_evaluation_set(config.data, config.base_directory)) {
    eval = fitted(eval, train.get());
    const std::vector<std::int64_t> of_eval = look_at(eval, false);
    findings.add_equal(equal_samples(*train, of_train, *eval, of_eval), *train, *eval);
  }
  if (arguments.json)
    print_as_is(json_text(reports, findings.lines()) + "\n");
  else
    for (const std::string& line : findings.lines()) print_result("\nlook at this: {}\n", line);
  if (arguments.png.empty()) return 0;
  if (rows.empty())
    throw Error(ErrorKind::config, "the samples are no images, so there is no picture of them",
                arguments.config, "Leave out --png.");
  const std::vector<std::string> inputs{arguments.config};
  write_output(arguments.png, png_of(contact_sheet(rows)), inputs);
  if (!arguments.json) print_result("pictures written to {}\n", arguments.png);
  return 0;
}

}  // namespace

extern const Command kDataCommand = {"data",
                                     "Print what the data sets hold, before and after the transforms, how "
                                     "fast they are read, and what looks wrong",
                                     "lockstep data examples/digits.yaml --png digits.png",
                                     call_with<DataArguments, declare, run>};

}  // namespace lockstep
