// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the time goes, thread by thread: spans with a name and a category, kept in memory while tracing is
// on. Off, a span costs one load. A span that does not fit into its thread's buffer is counted and dropped.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

struct TraceSpan {
  std::array<char, 48> name{};
  const char* category = "";              ///< "forward", "backward", "communication", "input", "saving", ...
  std::int64_t begin_ns = 0, end_ns = 0;  ///< since start_trace()
};

/// What one thread did.
struct ThreadTrace {
  std::string thread;
  std::vector<TraceSpan> spans;  ///< in the order in which they ended
  std::int64_t dropped = 0;
};

/// Begins anew. A buffer is allocated when a thread's first span ends. Any thread, while no spans are open
/// elsewhere or it does not matter that they are lost.
void start_trace();
/// Ends tracing and returns what was kept, the threads by name.
std::vector<ThreadTrace> stop_trace();
/// The calling thread's name in traces: "compute 1" (31 characters). Without one it is "thread".
void name_trace_thread(const char* name);

/// A profiler of the system's that is told of every span as it begins and ends (NVTX). From then on, for the
/// life of the program, whether spans are kept or not. Before any span.
struct TraceListener {
  void (*begin)(const char* category, const char* name);
  void (*end)();
};
void set_trace_listener(TraceListener listener);

namespace trace_detail {
inline constexpr int kKept = 1, kHeard = 2;
extern std::atomic<int> mode;  ///< who wants spans: bits
extern TraceListener listener;
std::int64_t now_ns() noexcept;
void record(const char* category, const char* name, std::int64_t begin_ns) noexcept;
}  // namespace trace_detail

/// Somebody wants spans.
inline bool tracing() { return trace_detail::mode.load(std::memory_order_relaxed) != 0; }

/// A span that lasts as long as this object. `name` is copied (47 characters), `category` must be a literal.
class Traced {
 public:
  Traced(const char* category, const char* name) noexcept {
    mode_ = trace_detail::mode.load(std::memory_order_relaxed);
    if (mode_ == 0) return;
    category_ = category;
    name_ = name;
    begin_ns_ = trace_detail::now_ns();
    if ((mode_ & trace_detail::kHeard) != 0) trace_detail::listener.begin(category, name);
  }
  ~Traced() {
    if (mode_ == 0) return;
    if ((mode_ & trace_detail::kHeard) != 0) trace_detail::listener.end();
    if ((mode_ & trace_detail::kKept) != 0) trace_detail::record(category_, name_, begin_ns_);
  }
  Traced(const Traced&) = delete;
  Traced& operator=(const Traced&) = delete;

 private:
  int mode_ = 0;
  const char* category_ = nullptr;
  const char* name_ = nullptr;
  std::int64_t begin_ns_ = 0;
};

}  // namespace lockstep
