// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Traces: spans with a name and a category per thread, kept in memory while tracing is on. While it is off, a
// span costs one atomic load. A span that does not fit into its thread's buffer is counted and dropped. Calls
// between ranks leave messages too, from which a trace of several ranks has its arrows.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

struct TraceSpan {
  std::array<char, 128> name{};
  const char* category = "";              ///< "forward", "backward", "communication", "input", "saving", ...
  std::int64_t begin_ns = 0, end_ns = 0;  ///< since start_trace()
};

/// One end of a message between ranks, or one rank's part in a collective call. Plain bytes.
struct TraceMessage {
  enum class Kind : std::uint8_t { sent, received, joined };  ///< joined: a collective call
  Kind kind = Kind::joined;
  std::int32_t ranks = 1;           ///< in the group; from and to are among them
  std::int32_t from = -1, to = -1;  ///< joined: -1
  /// The group and the thread, and how many such messages or calls the thread had before since start_trace():
  /// the same at both ends, because ranks make the same calls in the same order.
  std::uint64_t channel = 0, number = 0;
  std::int64_t begin_ns = 0, end_ns = 0;  ///< of the call, since start_trace(), within its span
};

/// The spans of one thread.
struct ThreadTrace {
  std::string thread;
  std::vector<TraceSpan> spans;  ///< in the order of their ends
  std::vector<TraceMessage> messages;
  std::int64_t dropped = 0;
};

/// Discards the spans so far and starts tracing. A thread allocates its buffer when its first span ends. Any
/// thread may call it; spans that are open at this time are lost.
void start_trace();
/// When it started, on the steady clock.
std::int64_t trace_start_ns();
/// Stops tracing and returns the spans by thread, sorted by thread name.
std::vector<ThreadTrace> stop_trace();
/// Sets the calling thread's name in traces, at most 31 characters ("compute 1"). The default is "thread".
void name_trace_thread(const char* name);

/// An external profiler that receives the begin and the end of every span (NVTX). Set it before the first
/// span; it stays for the life of the program, whether or not spans are kept.
struct TraceListener {
  void (*begin)(const char* category, const char* name);
  void (*end)();
};
void set_trace_listener(TraceListener listener);

namespace trace_detail {
inline constexpr int kKept = 1, kHeard = 2;
extern std::atomic<int> mode;  ///< consumers of spans: kKept, kHeard
extern TraceListener listener;
std::int64_t now_ns() noexcept;
void record(const char* category, const char* name, std::int64_t begin_ns) noexcept;
/// `message` has the times of the steady clock, and neither channel nor number.
void record_message(const char* group, TraceMessage message) noexcept;
}  // namespace trace_detail

/// True if spans are kept or sent to a listener.
inline bool tracing() { return trace_detail::mode.load(std::memory_order_relaxed) != 0; }

/// A span that lasts as long as this object. `name` is copied (at most 127 characters); `category` must be a
/// literal.
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
  /// The span is kept.
  bool kept() const { return (mode_ & trace_detail::kKept) != 0; }
  std::int64_t begin_ns() const { return begin_ns_; }
  Traced(const Traced&) = delete;
  Traced& operator=(const Traced&) = delete;

 private:
  int mode_ = 0;
  const char* category_ = nullptr;
  const char* name_ = nullptr;
  std::int64_t begin_ns_ = 0;
};

}  // namespace lockstep
