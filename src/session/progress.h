// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Progress of a long run: one line that is redrawn on a terminal, or a line every few seconds in a log. Only
// rank 0 shows it.
//
// The formatting functions and the meter are pure; Progress adds the clock and the terminal. update() is
// called after every step. It reads the clock and adds numbers, and allocates only when it shows something.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

namespace lockstep {

/// The position of a run. Sums count from any fixed moment, because only differences are used.
struct ProgressSample {
  std::int64_t step = 0;                                ///< steps done
  std::int64_t total_steps = 0;                         ///< 0: unknown
  std::int64_t epoch = 0;                               ///< the current one, from 1; 0: unknown
  std::int64_t epochs = 0;                              ///< 0: unknown
  double loss = 0;                                      ///< of the last step
  std::int64_t samples = 0;                             ///< consumed by all ranks
  double communication_seconds = 0, input_seconds = 0;  ///< spent waiting by this rank
};

/// "42s", "3m05s", "2h07m", "3d04h"; "?" if negative or not finite.
std::string format_duration(double seconds);
/// Three digits: "8.21", "812", "12.3k", "1.20M"; "?" if negative or not finite.
std::string format_rate(double per_second);
/// "3%"; values below 0 or above 1 are clamped.
std::string format_share(double share);

/// Exponential averages: a value that is kMemorySeconds old has the weight 1/e. The first step is left out:
/// caches are cold, and buffers are allocated.
class RateMeter {
 public:
  static constexpr double kMemorySeconds = 10;
  /// The steps, or seconds, that make the rate steady enough for an estimate of the time left.
  static constexpr std::int64_t kSteadySteps = 10;
  static constexpr double kSteadySeconds = 3;

  RateMeter(const ProgressSample& start, double now) : last_(start), last_time_(now) {}
  void add(const ProgressSample& sample, double now);

  bool is_known() const { return time_ > 0; }
  bool is_steady() const { return steps_ > 0 && (steps_added_ > kSteadySteps || time_ >= kSteadySeconds); }
  double samples_per_second() const { return share_of_time(samples_); }
  double steps_per_second() const { return share_of_time(steps_); }
  double communication_share() const { return share_of_time(communication_); }
  double input_share() const { return share_of_time(input_); }

 private:
  double share_of_time(double sum) const { return time_ > 0 ? sum / time_ : 0; }

  ProgressSample last_;
  double last_time_;
  std::int64_t steps_added_ = 0;
  double time_ = 0, samples_ = 0, steps_ = 0, communication_ = 0, input_ = 0;
};

/// "step 200/1000  epoch 3/10  loss 0.1234  12.3k samples/s  comm 3%  input 1%  left 3m05s".
std::string progress_line(const ProgressSample& sample, const RateMeter& meter);
/// progress_line() with a bar in front, fitted into `width` columns. The least important fields are dropped
/// first.
std::string progress_bar(const ProgressSample& sample, const RateMeter& meter, int width);

class Progress {
 public:
  static constexpr double kRedrawSeconds = 0.1, kLineSeconds = 10;

  struct Options {
    std::FILE* stream = stderr;  ///< of the redrawn line
    /// Columns of the terminal (terminal.h), on which one line is redrawn. Empty: a line every few seconds.
    std::function<int()> width;
    std::function<void(std::string_view)> write_line;  ///< lines for the log; called on the calling thread
    std::function<double()> now_seconds;               ///< monotonic; empty: the steady clock
  };

  /// `start` is where the run begins; for a resumed run that is not step 0.
  Progress(Options options, const ProgressSample& start);

  /// Shows the progress after each step.
  void update(const ProgressSample& sample);
  /// A line of its own, such as the result of an evaluation.
  void line(std::string_view text);
  /// Removes the redrawn line and writes the last one: the position of the run, and how long it took.
  void finish(const ProgressSample& sample);

 private:
  void clear();

  Options options_;
  RateMeter meter_;
  ProgressSample start_;
  double start_time_, next_time_;
  bool first_ = true, drawn_ = false;
};

}  // namespace lockstep
