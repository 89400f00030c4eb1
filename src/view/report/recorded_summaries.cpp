// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "view/report/recorded_summaries.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <unordered_map>
#include <unordered_set>

#include "core/error.h"
#include "io/event_reader.h"
#include "io/event_trim.h"

namespace lockstep::report {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostSteps = 128;  ///< of a histogram, before every second one is left out
constexpr std::uintmax_t kMostBytes = std::uintmax_t{1} << 30;

/// Quantiles of a tag. `stride` records are between two that are kept.
struct Thinned {
  HistogramSeries series;
  std::int64_t stride = 1;
  Quantiles last;

  void add(const Quantiles& at) {
    last = at;
    if (series.records++ % stride != 0) return;
    series.steps.push_back(at);
    if (series.steps.size() < kMostSteps) return;
    for (std::size_t i = 0; 2 * i < series.steps.size(); ++i) series.steps[i] = series.steps[2 * i];
    series.steps.resize((series.steps.size() + 1) / 2);
    stride *= 2;
  }
  void drop_from(std::int64_t step) {
    std::erase_if(series.steps, [&](const Quantiles& at) { return at.step >= step; });
    if (!series.steps.empty()) last = series.steps.back();
  }
  HistogramSeries finish() && {
    if (!series.steps.empty() && series.steps.back().step < last.step) series.steps.push_back(last);
    return std::move(series);
  }
};

class Collector {
 public:
  void read(const std::string& path) {
    EventReader reader(path);
    while (std::optional<EventRecord> record = reader.next()) {
      if (record->restart) {
        for (Thinned& one : histograms_) one.drop_from(record->step);
        drop_pictures_from(record->step);
        std::erase_if(sounds_, [&](const LastSound& one) { return one.step >= record->step; });
        std::erase_if(texts_, [&](const LastText& one) { return one.step >= record->step; });
      }
      for (EventValue& value : record->values) {
        if (auto* const histogram = std::get_if<HistogramData>(&value.data); histogram && histogram->num > 0)
          histogram_of(value.tag).add(quantiles_of(record->step, *histogram));
        if (auto* const image = std::get_if<ImageData>(&value.data))
          add(value.tag, record->step, std::move(*image));
        if (auto* const sound = std::get_if<AudioData>(&value.data))
          last_of(sounds_, value.tag) = {value.tag, record->step, std::move(*sound)};
        if (auto* const tensor = std::get_if<TensorData>(&value.data)) {
          if (value.metadata.plugin == "text") text_tags_.insert(value.tag);
          if (text_tags_.contains(value.tag) && value.tag != kConfigurationTag && !tensor->strings.empty())
            last_of(texts_, value.tag) = {value.tag, record->step, std::move(tensor->strings[0])};
        }
      }
    }
  }

  RecordedSummaries finish() && {
    RecordedSummaries found;
    for (Thinned& one : histograms_) {
      HistogramSeries series = std::move(one).finish();
      if (!series.steps.empty()) found.histograms.push_back(std::move(series));
    }
    found.pictures = std::move(pictures_);
    found.sounds = std::move(sounds_);
    found.texts = std::move(texts_);
    return found;
  }

 private:
  Thinned& histogram_of(const std::string& tag) {
    const auto [at, is_new] = index_.try_emplace(tag, histograms_.size());
    if (is_new) histograms_.push_back({.series = {.tag = tag}});
    return histograms_[at->second];
  }

  template <typename Last>
  static Last& last_of(std::vector<Last>& all, const std::string& tag) {
    const auto known = std::ranges::find(all, tag, &Last::tag);
    return known != all.end() ? *known : all.emplace_back();
  }

  void drop_pictures_from(std::int64_t step) {
    std::erase_if(pictures_, [&](const PictureSeries& one) { return one.first_step >= step; });
    for (PictureSeries& one : pictures_) {
      if (one.last_step < step) continue;
      one.last_step = one.first_step;
      one.last = one.first;
    }
  }

  void add(const std::string& tag, std::int64_t step, ImageData&& image) {
    const auto known = std::ranges::find(pictures_, tag, &PictureSeries::tag);
    if (known == pictures_.end()) {
      pictures_.push_back({.tag = tag, .first_step = step, .last_step = step, .first = image, .last = image});
    } else {
      known->last_step = step;
      known->last = std::move(image);
    }
  }

  std::vector<Thinned> histograms_;
  std::unordered_map<std::string, std::size_t> index_;
  std::vector<PictureSeries> pictures_;
  std::vector<LastSound> sounds_;
  std::vector<LastText> texts_;
  std::unordered_set<std::string> text_tags_;  ///< a file has metadata with the first value of a tag only
};

/// In the order of their times. Not below the folder.
std::vector<fs::path> event_files(const std::string& folder) {
  std::vector<fs::path> files;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
    if (at->path().filename().string().find(".tfevents.") != std::string::npos && at->is_regular_file(failed))
      files.push_back(at->path());
  std::ranges::sort(files);
  return files;
}

}  // namespace

Quantiles quantiles_of(std::int64_t step, const HistogramData& histogram) {
  Quantiles found{.step = step, .values = {}};
  double below = 0;
  std::size_t bucket = 0;
  for (std::size_t i = 0; i < kShares.size(); ++i) {
    const double wanted = kShares[i] * histogram.num;
    while (bucket + 1 < histogram.counts.size() && below + histogram.counts[bucket] < wanted)
      below += histogram.counts[bucket++];
    const double low = std::max(histogram.min, bucket == 0 ? histogram.min : histogram.limits[bucket - 1]);
    const double high = std::min(histogram.max, histogram.limits[bucket]);
    const double inside = histogram.counts[bucket] > 0 ? (wanted - below) / histogram.counts[bucket] : 0;
    found.values[i] = std::clamp(low + inside * (high - low), histogram.min, histogram.max);
  }
  found.values.front() = histogram.min;
  found.values.back() = histogram.max;
  return found;
}

RecordedSummaries read_summaries(const std::string& run_dir) {
  Collector collector;
  std::vector<std::string> problems;
  std::uintmax_t bytes = 0;
  for (const fs::path& file : event_files(run_dir)) {
    std::error_code failed;
    const std::uintmax_t size = fs::file_size(file, failed);
    if (!failed) bytes += size;
    if (bytes > kMostBytes) {
      problems.push_back("Event files above 1 GiB are not read; TensorBoard shows them.");
      break;
    }
    try {
      collector.read(file.string());
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::bug) throw;
      problems.push_back(fmt::format("{}: {}.", error.where(), error.what_happened()));
    }
  }
  RecordedSummaries found = std::move(collector).finish();
  found.problems = std::move(problems);
  return found;
}

}  // namespace lockstep::report
