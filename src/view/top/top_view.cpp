// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "view/top/top_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <set>
#include <span>

#include "session/number_text.h"
#include "session/progress.h"

namespace lockstep {

namespace {

constexpr int kLabel = 7;        ///< columns of "step", "speed" ... with blanks
constexpr int kFewestRanks = 1;  ///< lines of ranks that are shown in the lowest terminal
constexpr int kMostJobs = 3;     ///< jobs before the last one

/// What a rank's step is made of, and how that is drawn.
struct Part {
  const char* name;
  const char *block, *ascii;
  Colour colour;
};
constexpr Part kCompute{"compute", "█", "#", Colour::green};
constexpr Part kCommunication{"communication", "▒", "=", Colour::yellow};
constexpr Part kInput{"input", "░", ".", Colour::blue};

constexpr int kNarrow = 60;

std::string_view name_of(const Part& part, const TextStyle& style) {
  return style.width < kNarrow && &part == &kCommunication ? "comm" : part.name;
}

std::string_view glyph(const Part& part, const TextStyle& style) {
  return style.unicode ? part.block : part.ascii;
}

std::string time_text(double seconds) {
  if (seconds >= 100) return fmt::format("{:.0f} s", seconds);
  if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
  if (seconds >= 0.1) return fmt::format("{:.0f} ms", 1e3 * seconds);
  return fmt::format("{:.2f} ms", 1e3 * seconds);
}

std::string memory_text(double bytes) {
  return bytes >= 1e9 ? fmt::format("{:.2f} GB", 1e-9 * bytes) : fmt::format("{:.0f} MB", 1e-6 * bytes);
}

TextLine labelled(const TextStyle& style, std::string_view label) {
  TextLine line(style);
  line.add(label, Colour::dim).pad_to(kLabel);
  return line;
}

std::string sparkline(const std::vector<double>& values, int columns, bool unicode) {
  static constexpr const char* kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr std::string_view kAscii = "_.-=oO#@";
  const std::size_t count = std::min(values.size(), static_cast<std::size_t>(std::max(columns, 0)));
  const std::vector<double> shown(values.end() - static_cast<std::ptrdiff_t>(count), values.end());
  double most = 0;
  for (const double value : shown)
    if (std::isfinite(value)) most = std::max(most, value);
  std::string text;
  for (const double value : shown) {
    if (!std::isfinite(value) || most <= 0) {
      text += " ";
      continue;
    }
    const auto level = static_cast<std::size_t>(std::clamp(std::lround(value / most * 7), 0L, 7L));
    text += unicode ? std::string(kBlocks[level]) : std::string(1, kAscii[level]);
  }
  return text;
}

void add_head(std::vector<std::string>& lines, const TopState& state, const TextStyle& style) {
  const JobRecord& last = state.jobs.back();
  TextLine line(style);
  line.add(state.run_dir, Colour::bold).add("  ");
  const bool good = state.progress.state == RunState::running || state.progress.state == RunState::finished;
  line.add(state.state, good ? Colour::green : Colour::yellow);
  std::set<std::string> hosts;
  if (state.ranks)
    for (const RankReport& rank : state.ranks->ranks) hosts.insert(rank.host);
  std::string job = fmt::format("{} rank{}", last.ranks, last.ranks == 1 ? "" : "s");
  job += hosts.size() > 1 ? fmt::format(" on {} hosts", hosts.size()) : " on " + last.host;
  if (state.jobs.size() > 1) job += fmt::format(", job {}", state.jobs.size());
  job += ", " + format_duration((last.ended() ? last.end : state.now) - last.begin);
  if (line.room() >= columns_of(job) + 2) line.pad_to(style.width - columns_of(job)).add(job, Colour::dim);
  lines.push_back(line.text());
}

void add_progress(std::vector<std::string>& lines, const TopState& state, const TextStyle& style) {
  const RunProgress& run = state.progress;
  TextLine line = labelled(style, "step");
  line.add(run.total_steps > 0 ? fmt::format("{}/{}", run.step, run.total_steps)
                               : fmt::format("{}", run.step));
  std::string after;
  double share = 0;
  if (run.total_steps > 0) {
    share = std::clamp(static_cast<double>(run.step) / static_cast<double>(run.total_steps), 0.0, 1.0);
    after += fmt::format(" {:.0f}%", std::floor(100 * share));
  }
  if (state.epoch > 0) after += fmt::format("  epoch {}", state.epoch);
  const bool goes_on =
      run.state == RunState::starting || run.state == RunState::running || run.state == RunState::waiting;
  if (goes_on && run.left_seconds > 0) after += "  left " + format_duration(run.left_seconds);
  const int bar = std::min(40, line.room() - columns_of(after) - 3);
  if (run.total_steps > 0 && bar >= 4) {
    const int filled = static_cast<int>(share * bar);
    line.add(" [")
        .add(repeated(style.unicode ? "█" : "#", filled), Colour::green)
        .add(repeated(style.unicode ? "░" : ".", bar - filled), Colour::dim)
        .add("]");
  }
  lines.push_back(line.add(after).text());
}

void add_numbers(std::vector<std::string>& lines, const TopState& state, const TextStyle& style) {
  double speed = 0;
  if (!state.speeds.empty()) speed = state.speeds.back();
  if (state.ranks && !state.jobs.back().ended()) speed = state.ranks->samples_per_second;
  if (speed > 0) {
    TextLine line = labelled(style, "speed");
    line.add(format_rate(speed) + " samples/s").pad_to(kLabel + 18);
    lines.push_back(
        line.add(sparkline(state.speeds, std::min(line.room(), 60), style.unicode), Colour::cyan).text());
  }
  if (state.loss) {
    TextLine line = labelled(style, "loss");
    lines.push_back(line.add(number_text(*state.loss)).text());
  }
  if (!state.evaluation.empty()) {
    TextLine line = labelled(style, "eval");
    const std::string where = fmt::format("at step {}", state.evaluated_step);
    for (const auto& [name, value] : state.evaluation) {
      const std::string text = fmt::format("{} {}  ", name, number_text(value));
      if (columns_of(text) + columns_of(where) > line.room()) break;  // half a number would be a wrong one
      line.add(text);
    }
    lines.push_back(line.add(where, Colour::dim).text());
  }
}

void add_jobs(std::vector<std::string>& lines, const TopState& state, const TextStyle& style) {
  const auto before = static_cast<std::int64_t>(state.jobs.size()) - 1;
  for (std::int64_t i = std::max<std::int64_t>(0, before - kMostJobs); i < before; ++i) {
    const JobRecord& job = state.jobs[static_cast<std::size_t>(i)];
    TextLine line = labelled(style, fmt::format("job {}", i + 1));
    line.add(fmt::format("{} after step {}", job.ended() ? job.state : "crashed", job.step));
    line.add(fmt::format(", {} rank{} on {}", job.ranks, job.ranks == 1 ? "" : "s", job.host), Colour::dim);
    const double end = job.ended() ? job.end : job.heartbeat;
    if (end > job.begin) line.add(", " + format_duration(end - job.begin), Colour::dim);
    if (!job.reason.empty()) line.add(": " + job.reason, Colour::dim);
    lines.push_back(line.text());
  }
}

/// The table of ranks: which columns there are depends on the width.
class RankTable {
 public:
  RankTable(const RanksReport& report, const TextStyle& style)
      : report_(report), style_(style), slow_(stragglers_of(report)) {
    for (const RankReport& rank : report.ranks) {
      longest_ = std::max(longest_, rank.time.step_seconds);
      host_ = std::max(host_, columns_of(rank.host));
      gpus_ = gpus_ || rank.time.peak_gpu_bytes > 0;
    }
    host_ = std::min(host_, 16);
    if (style.width < kNarrow) host_ = 0;
    memory_ = style.width >= 50;
    gpus_ = gpus_ && style.width >= kNarrow;
  }

  std::string head() const {
    TextLine line(style_);
    line.add("rank ", Colour::dim);
    if (host_ > 0) line.add("host", Colour::dim).pad_to(kRank + host_ + 1);
    line.add("     step ", Colour::dim);
    for (const Part* part : {&kCompute, &kCommunication, &kInput})
      line.add(glyph(*part, style_), part->colour)
          .add(fmt::format(" {}  ", name_of(*part, style_)), Colour::dim);
    if (memory_ && line.columns() <= style_.width - memory_columns() - kMark) {
      line.pad_to(style_.width - memory_columns() - kMark).add("   memory", Colour::dim);
      if (gpus_) line.add("   on GPU", Colour::dim);
    }
    return line.text();
  }

  std::string row(std::size_t index) const {
    const RankReport& rank = report_.ranks[index];
    TextLine line(style_);
    line.add(fmt::format("{:>4} ", index), slow_[index] ? Colour::red : Colour::none);
    if (host_ > 0) {
      line.add(rank.host.substr(0, static_cast<std::size_t>(host_))).pad_to(kRank + host_ + 1);
    }
    line.add(fmt::format("{:>9} ", time_text(rank.time.step_seconds)));
    const int bar = line.room() - (memory_ ? memory_columns() : 0) - kMark;
    add_bar(line, rank.time, std::max(bar, 3));
    if (memory_) line.add(fmt::format("{:>9}", memory_text(rank.time.peak_memory_bytes)));
    if (gpus_) line.add(fmt::format("{:>9}", memory_text(rank.time.peak_gpu_bytes)));
    if (slow_[index]) line.add(" slow", Colour::red);
    return line.text();
  }

  /// The ranks that stand in `left`.
  std::string others(std::span<const std::size_t> left) const {
    double least = std::numeric_limits<double>::infinity(), most = 0, memory = 0;
    for (const std::size_t index : left) {
      const RankTime& time = report_.ranks[index].time;
      least = std::min(least, time.work_seconds);
      most = std::max(most, time.work_seconds);
      memory = std::max(memory, time.peak_memory_bytes);
    }
    return TextLine(style_)
        .add(fmt::format("  and {} faster rank{}: work {} to {}, memory up to {}", left.size(),
                         left.size() == 1 ? "" : "s", time_text(least), time_text(most), memory_text(memory)),
             Colour::dim)
        .text();
  }

  /// Shares of all ranks' time.
  std::string total() const {
    RankTime sum;
    for (const RankReport& rank : report_.ranks) {
      sum.step_seconds += rank.time.step_seconds;
      sum.communication_seconds += rank.time.communication_seconds;
      sum.input_seconds += rank.time.input_seconds;
    }
    const double all = std::max(sum.step_seconds, 1e-12);
    const double communication = sum.communication_seconds / all, input = sum.input_seconds / all;
    TextLine line = labelled(style_, "time");
    line.add(fmt::format("compute {}  {} {}  input {}", format_share(1 - communication - input),
                         name_of(kCommunication, style_), format_share(communication), format_share(input)));
    return line.text();
  }

 private:
  static constexpr int kRank = 5, kMemory = 9, kMark = 5;

  int memory_columns() const { return gpus_ ? 2 * kMemory : kMemory; }

  void add_bar(TextLine& line, const RankTime& time, int columns) const {
    const double scale = longest_ > 0 ? columns / longest_ : 0;
    const int all = static_cast<int>(std::lround(time.step_seconds * scale));
    const int input = static_cast<int>(std::lround(time.input_seconds * scale));
    const int waiting =
        std::min(static_cast<int>(std::lround(time.communication_seconds * scale)), all - input);
    line.add(repeated(glyph(kCompute, style_), all - input - waiting), kCompute.colour)
        .add(repeated(glyph(kCommunication, style_), waiting), kCommunication.colour)
        .add(repeated(glyph(kInput, style_), input), kInput.colour)
        .add(repeated(" ", columns - all));
  }

  const RanksReport& report_;
  const TextStyle& style_;
  const std::vector<bool> slow_;
  double longest_ = 0;
  int host_ = 4;
  bool memory_ = true, gpus_ = false;
};

void add_ranks(std::vector<std::string>& lines, const RankTable& table, const RanksReport& report, int room) {
  std::vector<std::size_t> order(report.ranks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto count = static_cast<int>(order.size());
  if (count <= room) {
    for (const std::size_t index : order) lines.push_back(table.row(index));
    return;
  }
  std::ranges::stable_sort(order, std::greater(),
                           [&](std::size_t index) { return report.ranks[index].time.work_seconds; });
  const auto shown = static_cast<std::size_t>(std::max(kFewestRanks, room - 1));
  for (std::size_t i = 0; i < shown; ++i) lines.push_back(table.row(order[i]));
  lines.push_back(table.others(std::span(order).subspan(shown)));
}

}  // namespace

std::vector<std::string> top_lines(const TopState& state, const TextStyle& style, bool fitted) {
  std::vector<std::string> lines;
  add_head(lines, state, style);
  add_progress(lines, state, style);
  add_numbers(lines, state, style);
  if (state.ranks && !state.ranks->ranks.empty()) {
    const RankTable table(*state.ranks, style);
    lines.push_back(table.total());
    add_jobs(lines, state, style);
    lines.emplace_back();
    lines.push_back(table.head());
    const int room = fitted ? style.height - static_cast<int>(lines.size()) : std::numeric_limits<int>::max();
    add_ranks(lines, table, *state.ranks, room);
  } else {
    add_jobs(lines, state, style);
    lines.emplace_back();
    lines.push_back(TextLine(style).add("no times of ranks yet", Colour::dim).text());
  }
  if (fitted && static_cast<int>(lines.size()) > style.height)
    lines.resize(static_cast<std::size_t>(style.height));
  return lines;
}

}  // namespace lockstep
