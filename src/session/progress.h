// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Progress of a long run: on a terminal one line that is redrawn, in a log a line now and then. Only rank 0
// has one.
//
// The formatting functions and the meter are pure; Progress adds the clock and the terminal. update() is
// called after every step: it reads the clock, adds numbers, and allocates only when something is to be
// shown.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

namespace lockstep {

/// Where a run stands. Sums are since any fixed moment: only differences count.
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
/// "3%"; below 0 or above 1 is cut off.
std::string format_share(double share);

/// Averages in which what lies kMemorySeconds back counts a third (1/e).
class RateMeter {
 public:
  static constexpr double kMemorySeconds = 10;

  RateMeter(const ProgressSample& start, double now) : last_(start), last_time_(now) {}
  void add(const ProgressSample& sample, double now);

  double samples_per_second() const { return share_of_time(samples_); }
  double steps_per_second() const { return share_of_time(steps_); }
  double communication_share() const { return share_of_time(communication_); }
  double input_share() const { return share_of_time(input_); }

 private:
  double share_of_time(double sum) const { return time_ > 0 ? sum / time_ : 0; }

  ProgressSample last_;
  double last_time_;
  double time_ = 0, samples_ = 0, steps_ = 0, communication_ = 0, input_ = 0;
};

/// "step 200/1000  epoch 3/10  loss 0.1234  12.3k samples/s  comm 3%  input 1%  left 3m05s".
std::string progress_line(const ProgressSample& sample, const RateMeter& meter);
/// The same with a bar in front, fitted into `width` columns: fields are left out from the least important
/// one on.
std::string progress_bar(const ProgressSample& sample, const RateMeter& meter, int width);

class Progress {
 public:
  static constexpr double kRedrawSeconds = 0.1, kLineSeconds = 10;

  struct Options {
    bool terminal = false;                             ///< redraw one line; else lines now and then
    std::FILE* stream = stderr;                        ///< of the redrawn line
    std::function<void(std::string_view)> write_line;  ///< lines for the log; called on the calling thread
    std::function<double()> now_seconds;               ///< monotonic; empty: the steady clock
    std::function<int()> width;                        ///< of the terminal; empty: asked from the system
  };
  /// True if `stream` is a terminal on which a line can be redrawn.
  static bool is_terminal(std::FILE* stream);

  /// `start` is where the run begins (a resumed one not at step 0).
  Progress(Options options, const ProgressSample& start);

  /// After each step.
  void update(const ProgressSample& sample);
  /// A line of its own, such as the result of an evaluation.
  void line(std::string_view text);
  /// The last line: where the run stands, and how long it took. Removes the redrawn line.
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
