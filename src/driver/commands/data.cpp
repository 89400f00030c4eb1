// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep data`: what the data sets of a configuration hold, before and after the transforms, how fast they
// are read, and what looks wrong. One process, no model, no run.
#include "driver/commands/commands.h"
#include "driver/commands/print_result.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/log.h"
#include "core/timer.h"
#include "data/data_options.h"
#include "data/normalization.h"
#include "data/text_info.h"
#include "data/value_notes.h"
#include "data/whitening.h"
#include "driver/config/config.h"
#include "driver/samples/data_advice.h"
#include "driver/samples/length_statistics.h"
#include "driver/samples/sample_statistics.h"
#include "driver/setup/data_trial.h"
#include "driver/setup/run_size.h"
#include "io/output_file.h"
#include "io/sample_pictures.h"
#include "session/terminal.h"

namespace lockstep {

namespace {

constexpr std::size_t kSheetColumns = 8, kSheetRows = 4;
/// A stage is measured on so many samples, or for about so long.
constexpr std::int64_t kMeasured = 2000;

/// Samples to look at if nothing is said: of large ones, those that have so many bytes together.
std::int64_t enough(const Dataset& data) {
  constexpr std::int64_t kSamples = 10000, kBytes = 2'000'000'000;
  const std::int64_t bytes =
      data.stored_shape().num_elements() * static_cast<std::int64_t>(size_in_bytes(data.feature_dtype()));
  return std::clamp<std::int64_t>(kBytes / bytes, 16, kSamples);
}

std::string number(double value) { return fmt::format("{:.4g}", value); }

std::string text_of(const ValueStatistics& values) {
  return fmt::format("{} to {}, mean {}, standard deviation {}", number(values.least), number(values.most),
                     number(values.mean), number(values.deviation));
}

void print_features(const std::string& title, const FeatureStatistics& features) {
  fmt::print("  {:<16}{}\n", title, text_of(features.all));
  for (std::size_t c = 0; c < features.channels.size(); ++c)
    fmt::print("    channel {:<6}{}\n", c, text_of(features.channels[c]));
}

void print_normalization(const Dataset& data) {
  const Normalization* const values = data.normalization();
  if (values == nullptr) return;
  constexpr std::size_t kMostChannels = 16;
  const std::size_t channels = values->mean.size();
  if (data.normalize_by() == NormalizeBy::all) {
    fmt::print("  {:<16}by all: mean {}, standard deviation {}\n", "normalised", number(values->mean[0]),
               number(values->std[0]));
    return;
  }
  fmt::print("  {:<16}by channels: {}\n", "normalised", channels);
  for (std::size_t c = 0; c < std::min(channels, kMostChannels); ++c)
    fmt::print("    channel {:<6}mean {}, standard deviation {}{}\n", c, number(values->mean[c]),
               number(values->std[c]),
               std::ranges::find(values->constant, static_cast<std::int64_t>(c)) != values->constant.end()
                   ? " (constant)"
                   : "");
  if (channels > kMostChannels) fmt::print("    ... and {} more\n", channels - kMostChannels);
}

void print_whitening(const Dataset& data) {
  const Whitening* const values = data.whitening();
  if (values == nullptr || values->variances.empty()) return;
  fmt::print("  {:<16}{} values by {} components; ", "whitened", values->values(), values->components());
  double all = 0;
  for (const double variance : values->variances) all += variance;
  for (const double share : {0.9, 0.99, 0.999}) {
    double sum = 0;
    std::size_t count = 0;
    while (count < values->variances.size() && sum <= share * all) sum += values->variances[count++];
    fmt::print("{}{} have {:g} %", share == 0.9 ? "" : ", ", count, 100 * share);
  }
  fmt::print(" of the variance\n");
}

std::string class_name(const Dataset& data, std::int64_t label) {
  const auto& names = data.class_names();
  return label >= 0 && label < static_cast<std::int64_t>(names.size())
             ? names[static_cast<std::size_t>(label)]
             : fmt::format("{}", label);
}

void print_labels(const Dataset& data, const LabelStatistics& labels) {
  constexpr std::size_t kMostClasses = 40;
  constexpr std::int64_t kBar = 30;
  if (labels.counts.empty()) {
    fmt::print("  labels          {} columns: {}\n", labels.columns, text_of(labels.values));
    return;
  }
  std::int64_t most = 0, all = 0;
  for (const auto& [label, count] : labels.counts) {
    most = std::max(most, count);
    all += count;
  }
  fmt::print("  labels          {} classes\n", labels.counts.size());
  std::size_t shown = 0;
  for (const auto& [label, count] : labels.counts) {
    if (++shown > kMostClasses) {
      fmt::print("    ... and {} more\n", labels.counts.size() - kMostClasses);
      break;
    }
    fmt::print("    {:<14}{:>8} {:>5.1f} %  {}\n", class_name(data, label), count,
               100 * static_cast<double>(count) / static_cast<double>(all),
               std::string(static_cast<std::size_t>((count * kBar + most - 1) / most), '#'));
  }
}

/// Tokens of a sample of text, and its label.
void print_texts(const Dataset& data, std::span<const std::int64_t> samples) {
  constexpr std::size_t kMostTokens = 16, kMostCharacters = 72;
  const Vocabulary& vocabulary = data.text()->vocabulary;
  const bool characters = data.text()->tokenizer.unit == TokenUnit::characters;
  std::vector<float> ids(static_cast<std::size_t>(data.feature_shape().num_elements()));
  std::vector<float> scratch(static_cast<std::size_t>(data.scratch_values()));
  for (const std::int64_t sample : samples) {
    data.gather_features({&sample, 1}, {}, ids.data(), scratch.data());
    std::vector<std::string> tokens;
    for (std::size_t i = 0; i < std::min(ids.size(), characters ? kMostCharacters : kMostTokens); ++i)
      tokens.push_back(vocabulary.word(static_cast<std::int64_t>(ids[i])).text);
    std::string text = data.text()->tokenizer.join(tokens);
    std::replace(text.begin(), text.end(), '\n', ' ');
    fmt::print("  {}: {}...\n", data.where(sample), text);
  }
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
  Look(const DataArguments& arguments, const Config& config, bool training, Dataset& set, std::size_t number)
      : arguments_(arguments),
        seed_(config.general.seed),
        base_directory_(config.base_directory),
        training_(training),
        is_target_(number >= num_inputs(config.data)),
        input_(*sets_of(config.data)[number]),
        with_labels_(set.inputs().empty() || set.labels_come_from(number)),
        data_(set.inputs().empty() ? &set
              : is_target_         ? set.targets()[number - num_inputs(config.data)].data.get()
                                   : set.inputs()[number].data.get()),
        samples_(spread_samples(set, arguments.samples.value_or(enough(*data_)))) {
    data_->choose(set.choice());
  }

  const Dataset& data() const { return *data_; }
  std::span<const std::int64_t> samples() const { return samples_; }

  void print(DataFindings& findings) {
    fmt::print("{}{}: {} samples of {} {}{}\n", training_ ? "training set" : "evaluation set",
               input_.name.empty() ? "" : (is_target_ ? ", target " : ", input ") + input_.name,
               data_->num_chosen() == data_->size()
                   ? fmt::format("{}", data_->size())
                   : fmt::format("{} of {}", data_->num_chosen(), data_->size()),
               data_->stored_shape().to_string(), name_of(data_->feature_dtype()),
               data_->stored_shape() == data_->feature_shape()
                   ? ""
                   : fmt::format(", transformed to {}", data_->feature_shape().to_string()));
    fmt::print("  first sample    {}\n", data_->where(0));
    const Params& params = training_ ? input_.train : *input_.eval;
    for (const std::string& note : value_notes(input_.format, params, base_directory_))
      fmt::print("  {}\n", note);
    fmt::print("  size            {:.2f} MB{}\n", static_cast<double>(data_->size_bytes()) * 1e-6,
               data_->stream() != nullptr ? ", read while it is used" : "");
    if (static_cast<std::int64_t>(samples_.size()) < data_->num_chosen())
      fmt::print("  looked at       {} samples, evenly spread; --samples takes more\n", samples_.size());
    for (const std::string& note : bad_records_notes(*data_)) fmt::print("  bad records     {}\n", note);
    print_normalization(*data_);
    for (const std::string& line : length_lines(*data_, samples_)) fmt::print("  {}\n", line);
    print_whitening(*data_);
    const bool labelled = with_labels_ && data_->label_kind() != LabelKind::none;
    const LabelStatistics labels = labelled     ? label_statistics(*data_, samples_)
                                   : is_target_ ? target_statistics(*data_, samples_)
                                                : LabelStatistics{};
    const TransformList list(params, base_directory_);
    data_->set_transforms(TransformList(), training_);
    const FeatureStatistics before = feature_statistics(*data_, samples_, seed_);
    print_features("values", before);
    stored_ = pictures_of(before);
    const double plain = rate(*data_, measured(), seed_);
    if (!list.empty()) {
      data_->set_transforms(TransformList(params, base_directory_), training_);
      const FeatureStatistics after = feature_statistics(*data_, samples_, seed_);
      print_features("transformed", after);
      transformed_ = pictures_of(after);
      if (data_->text() == nullptr && !is_target_) findings.add_values(training_, after);
    } else if (data_->text() == nullptr && !is_target_) {
      findings.add_values(training_, before);
    }
    if (labelled || !labels.counts.empty())
      print_labels(*data_, labels);
    else if (with_labels_)
      fmt::print("  labels          none\n");
    if (labelled) findings.add_labels(training_, labels);
    findings.add_reading(training_, *data_);
    if (data_->text() != nullptr)
      print_texts(*data_, std::span(samples_).first(std::min<std::size_t>(3, samples_.size())));
    print_rates(plain, list.empty());
    show();
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
  std::span<const std::int64_t> measured() const {
    return std::span(samples_).first(std::min<std::size_t>(samples_.size(), kMeasured));
  }

  std::vector<Picture> pictures_of(const FeatureStatistics& values) const {
    if (!has_picture(data_->feature_shape())) return {};
    const std::size_t count = std::min(kSheetColumns * kSheetRows, samples_.size());
    std::vector<float> features(static_cast<std::size_t>(data_->feature_shape().num_elements()));
    std::vector<float> scratch(static_cast<std::size_t>(data_->scratch_values()));
    std::vector<Picture> pictures;
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t sample = samples_[i * samples_.size() / count];
      data_->gather_features({&sample, 1}, {.seed = seed_, .place = sample}, features.data(), scratch.data());
      pictures.push_back(picture_of(data_->feature_shape(), features, static_cast<float>(values.all.least),
                                    static_cast<float>(values.all.most)));
    }
    return pictures;
  }

  /// The first pictures in the terminal, if there is one.
  void show() const {
    if (stored_.empty() || arguments_.show == 0) return;
    const auto width =
        terminal_width_of(stdout, [](const char* name) -> const char* { return std::getenv(name); });
    if (!width && !arguments_.show) return;
    const char* const colors = std::getenv("COLORTERM");
    const bool color = width && colors != nullptr &&
                       (std::string_view(colors) == "truecolor" || std::string_view(colors) == "24bit");
    const std::size_t count = std::min(stored_.size(), static_cast<std::size_t>(arguments_.show.value_or(4)));
    for (const auto* pictures : {&stored_, &transformed_})
      if (!pictures->empty())
        fmt::print("{}\n",
                   terminal_pictures(std::span(*pictures).first(count), width ? width() : 100, color));
  }

  void print_rates(double plain, bool no_transforms) const {
    const double bytes = static_cast<double>(data_->stored_shape().num_elements()) *
                         static_cast<double>(size_in_bytes(data_->feature_dtype()));
    fmt::print("  one thread      {:.0f} samples/s ({:.0f} MB/s) {}\n", plain, plain * bytes * 1e-6,
               data_->stream() != nullptr ? "read and converted" : "converted from memory");
    if (!no_transforms)
      fmt::print("                  {:.0f} samples/s with the transforms\n", rate(*data_, measured(), seed_));
  }

  const DataArguments& arguments_;
  std::uint64_t seed_;
  const std::string& base_directory_;
  bool training_;
  bool is_target_;
  const DataInput& input_;
  bool with_labels_;
  Dataset* data_;
  std::vector<std::int64_t> samples_;
  std::vector<Picture> stored_, transformed_;
};

/// Normalises and whitens both sets by the numbers of the training set. `training`: that of an evaluation
/// set, otherwise null.
void normalize(Dataset& set, const SampleChoice* choice, const Dataset* training) {
  for (std::size_t i = 0; i < set.inputs().size(); ++i)
    normalize(*set.inputs()[i].data, choice,
              training != nullptr ? training->inputs()[i].data.get() : nullptr);
  for (std::size_t i = 0; i < set.targets().size(); ++i)
    normalize(*set.targets()[i].data, choice,
              training != nullptr ? training->targets()[i].data.get() : nullptr);
  if (set.normalize_by() != NormalizeBy::none)
    set.normalize(training != nullptr ? *training->normalization()
                                      : computed_normalization(set, choice, cores_per_rank(1)));
  if (set.whiten_by().used())
    set.whiten(training != nullptr ? *training->whitening()
                                   : computed_whitening(set, choice, cores_per_rank(1)));
}

}  // namespace

int run_command(const DataArguments& arguments) {
  Config config = load_data_config(arguments.config, arguments.overrides);
  try_data_on_chief(config);
  DataFindings findings;
  std::vector<std::vector<Picture>> rows;
  const auto look_at = [&](Dataset& set, bool training) {
    std::vector<std::int64_t> samples;
    for (std::size_t i = 0; i < sets_of(config.data).size(); ++i) {
      if (!training || i > 0) fmt::print("\n");
      Look look(arguments, config, training, set, i);
      look.print(findings);
      for (std::vector<Picture>& row : look.pictures()) rows.push_back(std::move(row));
      if (i == 0) samples.assign(look.samples().begin(), look.samples().end());
    }
    return samples;
  };
  const std::unique_ptr<Dataset> train = open_training_set(config.data, config.base_directory);
  normalize(*train, train->choice().get(), nullptr);
  const std::vector<std::int64_t> of_train = look_at(*train, true);
  if (const auto eval = open_evaluation_set(config.data, config.base_directory)) {
    normalize(*eval, nullptr, train.get());
    const std::vector<std::int64_t> of_eval = look_at(*eval, false);
    findings.add_equal(equal_samples(*train, of_train, *eval, of_eval), *train, *eval);
  }
  for (const std::string& line : findings.lines()) fmt::print("\nlook at this: {}\n", line);
  if (arguments.png.empty()) return 0;
  if (rows.empty())
    throw Error(ErrorKind::config, "the samples are no images, so there is no picture of them",
                arguments.config, "Leave out --png.");
  const std::vector<std::string> inputs{arguments.config};
  write_output(arguments.png, png_of(contact_sheet(rows)), inputs);
  print_result("pictures written to {}\n", arguments.png);
  return 0;
}

}  // namespace lockstep
