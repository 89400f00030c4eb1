// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/trace.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

namespace lockstep {

namespace {

constexpr std::size_t kSpansPerThread = 1 << 16;  // 10 MB

/// One thread's buffer. Only start and stop contend for its mutex, so a span costs an uncontended lock.
struct ThreadBuffer {
  std::mutex mutex;
  std::string name;
  std::vector<TraceSpan> spans;
  std::vector<TraceMessage> messages;
  /// How many there were so far, by channel, kind and other rank.
  std::map<std::tuple<std::uint64_t, TraceMessage::Kind, std::int32_t>, std::uint64_t> counts;
  std::int64_t dropped = 0;
};

struct Buffers {
  std::mutex mutex;
  std::vector<std::shared_ptr<ThreadBuffer>> all;  // including threads that have ended
  std::atomic<std::int64_t> start_ns{0};
};

Buffers& buffers() {
  static Buffers* instance = new Buffers();  // not destroyed: threads may outlive static objects
  return *instance;
}

// Of the calling thread. Its first span creates the buffer, so threads without spans allocate nothing.
thread_local std::array<char, 32> own_name{"thread"};
thread_local std::shared_ptr<ThreadBuffer> own;

/// FNV-1a, which is the same on all ranks.
std::uint64_t hash_of(const char* text, std::uint64_t seed) {
  std::uint64_t hash = 0xcbf29ce484222325 ^ seed;
  for (; *text != '\0'; ++text) hash = (hash ^ static_cast<unsigned char>(*text)) * 0x100000001b3;
  return hash;
}

ThreadBuffer& own_buffer() {
  if (!own) {
    own = std::make_shared<ThreadBuffer>();
    own->name = own_name.data();
    const std::lock_guard lock(buffers().mutex);
    buffers().all.push_back(own);
  }
  return *own;
}

}  // namespace

namespace trace_detail {

std::atomic<int> mode{0};
TraceListener listener{nullptr, nullptr};

std::int64_t now_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void record(const char* category, const char* name, std::int64_t begin_ns) noexcept {
  const std::int64_t end_ns = now_ns(), start_ns = buffers().start_ns.load(std::memory_order_relaxed);
  if ((mode.load(std::memory_order_relaxed) & kKept) == 0 || begin_ns < start_ns) return;
  try {
    ThreadBuffer& own = own_buffer();
    const std::lock_guard lock(own.mutex);
    if (own.spans.size() >= kSpansPerThread) {
      ++own.dropped;
      return;
    }
    if (own.spans.capacity() == 0) own.spans.reserve(kSpansPerThread);
    TraceSpan& span = own.spans.emplace_back();
    std::strncpy(span.name.data(), name, span.name.size() - 1);
    span.category = category;
    span.begin_ns = begin_ns - start_ns;
    span.end_ns = end_ns - start_ns;
  } catch (...) {  // out of memory: the span is lost
  }
}

void record_message(const char* group, TraceMessage message) noexcept {
  const std::int64_t start_ns = buffers().start_ns.load(std::memory_order_relaxed);
  if ((mode.load(std::memory_order_relaxed) & kKept) == 0 || message.begin_ns < start_ns) return;
  message.begin_ns -= start_ns;
  message.end_ns -= start_ns;
  try {
    ThreadBuffer& own = own_buffer();
    const std::lock_guard lock(own.mutex);
    // Two groups of one name are used by different threads.
    message.channel = hash_of(own.name.c_str(), hash_of(group, static_cast<std::uint64_t>(message.ranks)));
    const std::int32_t other = message.kind == TraceMessage::Kind::sent ? message.to : message.from;
    message.number = own.counts[{message.channel, message.kind, other}]++;
    if (own.messages.size() < kSpansPerThread) own.messages.push_back(message);  // else its arrow is missing
  } catch (...) {  // out of memory: the arrow is lost
  }
}

}  // namespace trace_detail

void start_trace() {
  const std::lock_guard lock(buffers().mutex);
  for (const auto& buffer : buffers().all) {
    const std::lock_guard buffer_lock(buffer->mutex);
    buffer->spans.clear();
    buffer->messages.clear();
    buffer->counts.clear();
    buffer->dropped = 0;
  }
  buffers().start_ns = trace_detail::now_ns();
  trace_detail::mode |= trace_detail::kKept;
}

std::int64_t trace_start_ns() { return buffers().start_ns.load(std::memory_order_relaxed); }

std::vector<ThreadTrace> stop_trace() {
  trace_detail::mode &= ~trace_detail::kKept;
  std::vector<ThreadTrace> traces;
  const std::lock_guard lock(buffers().mutex);
  std::erase_if(buffers().all, [&](const std::shared_ptr<ThreadBuffer>& buffer) {
    const std::lock_guard buffer_lock(buffer->mutex);
    if (!buffer->spans.empty())
      traces.push_back(
          {buffer->name, std::move(buffer->spans), std::move(buffer->messages), buffer->dropped});
    buffer->spans = {};
    buffer->messages = {};
    buffer->counts = {};
    return buffer.use_count() == 1;  // its thread has ended
  });
  std::ranges::stable_sort(traces, {}, &ThreadTrace::thread);
  return traces;
}

void name_trace_thread(const char* name) {
  own_name = {};
  std::strncpy(own_name.data(), name, own_name.size() - 1);
  if (!own) return;
  const std::lock_guard lock(own->mutex);
  own->name = own_name.data();
}

void set_trace_listener(TraceListener listener) {
  trace_detail::listener = listener;
  trace_detail::mode |= trace_detail::kHeard;
}

}  // namespace lockstep
