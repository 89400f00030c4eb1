// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "session/number_text.h"

namespace lockstep {

namespace {

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A closed terminal must not end a run: what cannot be shown is dropped.
void show(std::FILE* stream, const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stream) != text.size() || std::fflush(stream) != 0)
    std::clearerr(stream);
}

std::string of_total(std::int64_t done, std::int64_t total) {
  return total > 0 ? fmt::format("{}/{}", done, total) : fmt::format("{}", done);
}

// A field of the line. Fields of low importance are dropped first when there is little room.
struct Field {
  std::string text;
  int importance;
};

std::vector<Field> fields_of(const ProgressSample& sample, const RateMeter& meter) {
  std::vector<Field> fields;
  fields.push_back({"step " + of_total(sample.step, sample.total_steps), 7});
  if (sample.epoch > 0) fields.push_back({"epoch " + of_total(sample.epoch, sample.epochs), 3});
  fields.push_back({"loss " + number_text(sample.loss), 6});
  if (meter.is_known()) {
    fields.push_back({format_rate(meter.samples_per_second()) + " samples/s", 4});
    fields.push_back({"comm " + format_share(meter.communication_share()), 2});
    fields.push_back({"input " + format_share(meter.input_share()), 1});
  }
  if (sample.total_steps > 0 && meter.is_steady()) {
    const auto rest = static_cast<double>(std::max<std::int64_t>(0, sample.total_steps - sample.step));
    fields.push_back({"left " + format_duration(rest / meter.steps_per_second()), 5});
  }
  return fields;
}

std::string joined(const std::vector<Field>& fields) {
  std::string text;
  for (const Field& field : fields) text += (text.empty() ? "" : "  ") + field.text;
  return text;
}

}  // namespace

std::string format_duration(double seconds) {
  if (!(seconds >= 0) || !std::isfinite(seconds)) return "?";
  const double rounded = std::min(std::round(seconds), 1e15);
  const auto s = static_cast<std::int64_t>(rounded);
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) return fmt::format("{}m{:02}s", s / 60, s % 60);
  if (s < 86400) return fmt::format("{}h{:02}m", s / 3600, s / 60 % 60);
  return fmt::format("{}d{:02}h", s / 86400, s / 3600 % 24);
}

std::string format_rate(double per_second) {
  if (!(per_second >= 0) || !std::isfinite(per_second)) return "?";
  std::string_view suffix;
  for (std::string_view next : {"k", "M", "G"}) {
    if (per_second < 999.5) break;
    per_second /= 1000;
    suffix = next;
  }
  const int decimals = per_second < 9.995 ? 2 : per_second < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f}{}", per_second, decimals, suffix);
}

std::string format_share(double share) {
  return std::isnan(share) ? "?" : fmt::format("{:.0f}%", 100 * std::clamp(share, 0.0, 1.0));
}

void RateMeter::add(const ProgressSample& sample, double now) {
  if (steps_added_++ == 0) {  // the first step takes longer than the others
    last_ = sample;
    last_time_ = now;
    return;
  }
  const double elapsed = now - last_time_;
  if (!(elapsed > 0)) return;  // the next sample covers this step too
  const double keep = std::exp(-elapsed / kMemorySeconds);
  const auto move = [keep](double& sum, double difference) { sum = sum * keep + difference; };
  move(time_, elapsed);
  move(samples_, static_cast<double>(sample.samples - last_.samples));
  move(steps_, static_cast<double>(sample.step - last_.step));
  move(communication_, sample.communication_seconds - last_.communication_seconds);
  move(input_, sample.input_seconds - last_.input_seconds);
  last_ = sample;
  last_time_ = now;
}

std::string progress_line(const ProgressSample& sample, const RateMeter& meter) {
  return joined(fields_of(sample, meter));
}

std::string progress_bar(const ProgressSample& sample, const RateMeter& meter, int width) {
  constexpr int kShortestBar = 10, kLongestBar = 30;
  const int columns = std::max(1, width - 1);  // the last column would make some terminals wrap
  std::vector<Field> fields = fields_of(sample, meter);
  std::string text = joined(fields);
  while (static_cast<int>(text.size()) > columns && fields.size() > 1) {
    fields.erase(std::min_element(fields.begin(), fields.end(), [](const Field& a, const Field& b) {
      return a.importance < b.importance;
    }));
    text = joined(fields);
  }
  if (static_cast<int>(text.size()) > columns) text.resize(static_cast<std::size_t>(columns));
  const int room =
      std::min(kLongestBar, columns - static_cast<int>(text.size()) - 4);  // brackets and two blanks
  if (sample.total_steps <= 0 || room < kShortestBar) return text;
  const double done = static_cast<double>(sample.step) / static_cast<double>(sample.total_steps);
  const int filled = static_cast<int>(std::clamp(done, 0.0, 1.0) * room);
  return fmt::format("[{:=<{}}{: <{}}]  {}", "", filled, "", room - filled, text);
}

Progress::Progress(Options options, const ProgressSample& start)
    : options_(std::move(options)), meter_(start, 0), start_(start), start_time_(0), next_time_(0) {
  LOCKSTEP_CHECK(options_.write_line);
  if (!options_.now_seconds) options_.now_seconds = steady_seconds;
  start_time_ = options_.now_seconds();
  next_time_ = start_time_;
  meter_ = RateMeter(start, start_time_);
}

void Progress::update(const ProgressSample& sample) {
  const double now = options_.now_seconds();
  meter_.add(sample, now);
  if (now < next_time_ && !first_) return;
  if (options_.width) {
    // The cursor returns to the first column, so that a line of another writer starts there.
    show(options_.stream, fmt::format("\r\033[K{}\r", progress_bar(sample, meter_, options_.width())));
    drawn_ = true;
    next_time_ = now + kRedrawSeconds;
  } else {
    options_.write_line(progress_line(sample, meter_));
    next_time_ = now + kLineSeconds;
  }
  first_ = false;
}

void Progress::clear() {
  if (!drawn_) return;
  show(options_.stream, "\r\033[K");
  drawn_ = false;
}

void Progress::line(std::string_view text) {
  clear();
  options_.write_line(text);
}

void Progress::finish(const ProgressSample& sample) {
  clear();
  const double seconds = options_.now_seconds() - start_time_;
  const auto samples = static_cast<double>(sample.samples - start_.samples);
  options_.write_line(fmt::format(
      "step {}  loss {}  {} samples/s on average  {} in all", of_total(sample.step, sample.total_steps),
      number_text(sample.loss), format_rate(seconds > 0 ? samples / seconds : 0), format_duration(seconds)));
}

}  // namespace lockstep
