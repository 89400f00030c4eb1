// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/samples/set_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/plain_nan.h"
#include "core/shown_text.h"
#include "data/normalization.h"
#include "data/sample_stream.h"
#include "data/text_info.h"
#include "data/whitening.h"
#include "io/print_result.h"
#include "tools/samples/feature_names.h"
#include "tools/samples/length_statistics.h"

namespace lockstep {

namespace {

std::string number(double value) { return fmt::format("{:.4g}", plain_nan(value)); }

std::string text_of(const ValueStatistics& values) {
  return fmt::format("{} to {}, mean {}, standard deviation {}", number(values.least), number(values.most),
                     number(values.mean), number(values.deviation));
}

/// What lines about channels begin with: as wide for all of them.
std::vector<std::string> channel_titles(const std::vector<std::string>& names, std::size_t channels) {
  std::vector<std::string> titles;
  std::size_t widest = 12;
  for (std::size_t c = 0; c < channels; ++c) {
    titles.push_back(shown_text(channel_name(names, c)));
    const auto is_first = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; };
    widest = std::max(widest, static_cast<std::size_t>(std::ranges::count_if(titles[c], is_first)));
  }
  for (std::string& title : titles) title = fmt::format("    {:<{}}", title, widest + 2);
  return titles;
}

void print_features(const std::string& title, const FeatureStatistics& features,
                    const std::vector<std::string>& names) {
  print_result("  {:<16}{}\n", title, text_of(features.all));
  const std::vector<std::string> titles = channel_titles(names, features.channels.size());
  for (std::size_t c = 0; c < features.channels.size(); ++c)
    print_result("{}{}\n", titles[c], text_of(features.channels[c]));
}

void print_normalization(const ReaderDataset& data, const std::vector<std::string>& names) {
  const Normalization* const values = data.stages().conversion().normalization().get();
  if (values == nullptr) return;
  constexpr std::size_t kMostChannels = 16;
  const std::size_t channels = values->mean.size();
  if (data.stages().conversion().normalize_by() == NormalizeBy::all) {
    print_result("  {:<16}by all: mean {}, standard deviation {}\n", "normalised", number(values->mean[0]),
                 number(values->std[0]));
    return;
  }
  if (data.stages().conversion().normalize_by() == NormalizeBy::elements) {
    const auto [least_mean, most_mean] = std::ranges::minmax(values->mean);
    const auto [least_std, most_std] = std::ranges::minmax(values->std);
    print_result(
        "  {:<16}by elements: {}, means from {} to {}, standard deviations from {} to {}; {} constant\n",
        "normalised", channels, number(least_mean), number(most_mean), number(least_std), number(most_std),
        values->constant.size());
    return;
  }
  print_result("  {:<16}by channels: {}\n", "normalised", channels);
  const std::vector<std::string> titles = channel_titles(names, std::min(channels, kMostChannels));
  for (std::size_t c = 0; c < std::min(channels, kMostChannels); ++c)
    print_result("{}mean {}, standard deviation {}{}\n", titles[c], number(values->mean[c]),
                 number(values->std[c]),
                 std::ranges::find(values->constant, static_cast<std::int64_t>(c)) != values->constant.end()
                     ? " (constant)"
                     : "");
  if (channels > kMostChannels) print_result("    ... and {} more\n", channels - kMostChannels);
}

void print_whitening(const ReaderDataset& data) {
  const Whitening* const values = data.stages().whitening().whitening().get();
  if (values == nullptr || values->variances.empty()) return;
  print_result("  {:<16}{} values by {} components; ", "whitened", values->values(), values->components());
  double all = 0;
  for (const double variance : values->variances) all += variance;
  for (const double share : {0.9, 0.99, 0.999}) {
    double sum = 0;
    std::size_t count = 0;
    while (count < values->variances.size() && sum <= share * all) sum += values->variances[count++];
    print_result("{}{} have {:g} %", share == 0.9 ? "" : ", ", count, 100 * share);
  }
  print_result(" of the variance\n");
}

void print_labels(const Dataset& data, const LabelStatistics& labels) {
  constexpr std::size_t kMostClasses = 40;
  constexpr std::int64_t kBar = 30;
  if (labels.counts.empty()) {
    print_result("  labels          {} columns: {}\n", labels.columns, text_of(labels.values));
    return;
  }
  std::int64_t most = 0, all = 0;
  for (const auto& [label, count] : labels.counts) {
    most = std::max(most, count);
    all += count;
  }
  print_result("  labels          {} classes\n", labels.counts.size());
  std::size_t shown = 0;
  for (const auto& [label, count] : labels.counts) {
    if (++shown > kMostClasses) {
      print_result("    ... and {} more\n", labels.counts.size() - kMostClasses);
      break;
    }
    print_result("    {:<14}{:>8} {:>5.1f} %  {}\n", class_name(data, label), count,
                 100 * static_cast<double>(count) / static_cast<double>(all),
                 std::string(static_cast<std::size_t>((count * kBar + most - 1) / most), '#'));
  }
}

/// Tokens of a sample of text, and its label.
void print_texts(const Dataset& data, std::span<const std::int64_t> samples) {
  constexpr std::size_t kMostTokens = 16, kMostCharacters = 72;
  const TextInfo& info = *data.text();
  const bool characters = info.tokenizer.unit == TokenUnit::characters;
  std::vector<float> ids(static_cast<std::size_t>(data.feature_shape().num_elements()));
  std::vector<float> scratch(static_cast<std::size_t>(data.scratch_values()));
  for (const std::int64_t sample : samples) {
    data.gather_features({&sample, 1}, {}, ids.data(), scratch.data());
    const std::size_t shown = std::min(ids.size(), characters ? kMostCharacters : kMostTokens);
    const std::vector<std::int32_t> tokens(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(shown));
    std::string text = info.text_of(tokens);
    std::replace(text.begin(), text.end(), '\n', ' ');
    print_result("  {}: {}...\n", data.where(sample), text);
  }
}

void print_rates(const ReaderDataset& data, const SetReport& report) {
  const double bytes = static_cast<double>(data.stored_shape().num_elements()) *
                       static_cast<double>(size_in_bytes(data.feature_dtype()));
  print_result("  one thread      {:.0f} samples/s ({:.0f} MB/s) {}\n", report.samples_per_second,
               report.samples_per_second * bytes * 1e-6,
               data.stream() != nullptr ? "read and converted" : "converted from memory");
  if (report.transformed_per_second)
    print_result("                  {:.0f} samples/s with the transforms\n", *report.transformed_per_second);
  if (report.unpacked_per_second)
    print_result("                  {:.0f} samples/s ({:.0f} MB/s) unpacked\n", *report.unpacked_per_second,
                 *report.unpacked_per_second * bytes * 1e-6);
}

}  // namespace

std::string class_name(const Dataset& data, std::int64_t label) {
  const auto& names = data.class_names();
  return label >= 0 && label < static_cast<std::int64_t>(names.size())
             ? names[static_cast<std::size_t>(label)]
             : fmt::format("{}", label);
}

void print_text(const ReaderDataset& data, const SetReport& report, std::span<const std::int64_t> samples) {
  print_result("{}{}: {} samples of {} {}{}\n", report.training ? "training set" : "evaluation set",
               report.name.empty() ? "" : (report.is_target ? ", target " : ", input ") + report.name,
               report.chosen == data.size() ? fmt::format("{}", data.size())
                                            : fmt::format("{} of {}", report.chosen, data.size()),
               data.stored_shape().to_string(), name_of(data.feature_dtype()),
               data.stored_shape() == data.feature_shape()
                   ? ""
                   : fmt::format(", transformed to {}", data.feature_shape().to_string()));
  print_result("  first sample    {}\n", data.where(report.first));
  for (const std::string& note : report.notes) print_result("  {}\n", note);
  print_result("  size            {:.2f} MB{}\n", static_cast<double>(data.size_bytes()) * 1e-6,
               data.stream() != nullptr ? ", read while it is used" : "");
  if (report.looked_at < report.chosen)
    print_result("  looked at       {} samples, evenly spread; --samples takes more\n", report.looked_at);
  for (const std::string& note : bad_records_notes(data)) print_result("  bad records     {}\n", note);
  print_normalization(data, report.names);
  for (const std::string& line : length_lines(data, samples)) print_result("  {}\n", line);
  print_whitening(data);
  print_features("values", report.stored, report.names);
  if (report.transformed) print_features("transformed", *report.transformed, {});
  if (report.labels)
    print_labels(data, *report.labels);
  else if (report.reads_labels)
    print_result("  labels          none\n");
  if (data.text() != nullptr) print_texts(data, samples.first(std::min<std::size_t>(3, samples.size())));
  print_rates(data, report);
}

}  // namespace lockstep
