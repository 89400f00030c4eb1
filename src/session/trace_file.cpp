// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "io/json.h"

namespace lockstep {

namespace {

using Kind = TraceMessage::Kind;

std::string metadata(const char* what, int rank, int thread, const Json& args) {
  Json event{{"args", args}, {"name", what}, {"ph", "M"}, {"pid", rank}};
  if (thread > 0) event["tid"] = thread;
  return event.dump();
}

double microseconds(std::int64_t nanoseconds) { return 1e-3 * static_cast<double>(nanoseconds); }

/// Arrows with growing ids.
class Arrows {
 public:
  /// From the begin of the call of `from` to the end of that of `to`.
  void add(const char* name, const PlacedMessage& from, const PlacedMessage& to, std::int64_t waited_ns) {
    ++id_;
    if (!text_.empty()) text_ += ",\n";
    text_ += fmt::format(
        "{{\"ph\":\"s\",\"name\":\"{0}\",\"cat\":\"flow\",\"id\":{1},\"pid\":{2},\"tid\":{3},\"ts\":{4:.3f}}}"
        ",\n",
        name, id_, from.rank, from.thread, microseconds(from.message.begin_ns));
    const std::string args =
        waited_ns >= 0 ? fmt::format(",\"args\":{{\"waited_us\":{:.3f}}}", microseconds(waited_ns)) : "";
    text_ += fmt::format(
        "{{\"ph\":\"f\",\"bp\":\"e\",\"name\":\"{0}\",\"cat\":\"flow\",\"id\":{1},\"pid\":{2},\"tid\":{3},"
        "\"ts\":{4:.3f}{5}}}",
        name, id_, to.rank, to.thread, microseconds(to.message.end_ns), args);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::int64_t id_ = 0;
};

/// The same for both ends of a message, and for all ranks of a collective call.
auto key_of(const PlacedMessage& one) {
  const TraceMessage& m = one.message;
  return std::tuple(m.channel, m.kind == Kind::joined, m.from, m.to, m.number);
}

}  // namespace

std::string span_events(std::span<const ThreadTrace> threads, int rank, const std::string& host,
                        std::int64_t shift_ns) {
  std::string text = metadata("process_name", rank, 0, {{"name", fmt::format("rank {} ({})", rank, host)}});
  text += ",\n" + metadata("process_sort_index", rank, 0, {{"sort_index", rank}});
  int number = 0;
  for (const ThreadTrace& thread : threads) {
    const int thread_id = trace_thread_id(rank, ++number);
    const std::string name = thread.dropped == 0
                                 ? thread.thread
                                 : fmt::format("{} ({} spans did not fit)", thread.thread, thread.dropped);
    text += ",\n" + metadata("thread_name", rank, thread_id, {{"name", name}});
    for (const TraceSpan& span : thread.spans)
      text += fmt::format(
          ",\n{{\"ph\":\"X\",\"name\":{},\"cat\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f}}}",
          Json(span.name.data()).dump(), span.category, rank, thread_id,
          microseconds(span.begin_ns + shift_ns), microseconds(span.end_ns - span.begin_ns));
  }
  return text;
}

std::vector<PlacedMessage> placed_messages(std::span<const ThreadTrace> threads, int rank, int ranks,
                                           std::int64_t shift_ns) {
  std::vector<PlacedMessage> placed;
  int number = 0;
  for (const ThreadTrace& thread : threads) {
    const int thread_id = trace_thread_id(rank, ++number);
    for (const TraceMessage& message : thread.messages) {
      if (message.ranks != ranks) continue;  // among some of them: its numbers of ranks are others
      PlacedMessage& one = placed.emplace_back(PlacedMessage{message, rank, thread_id});
      one.message.begin_ns += shift_ns;
      one.message.end_ns += shift_ns;
    }
  }
  return placed;
}

std::string flow_events(std::vector<PlacedMessage> messages, int ranks, std::int64_t error_ns) {
  std::ranges::stable_sort(messages, {}, key_of);
  Arrows arrows;
  const auto possible = [&](const PlacedMessage& from, const PlacedMessage& to) {
    return from.rank != to.rank && to.message.end_ns + error_ns >= from.message.begin_ns;
  };
  for (std::size_t begin = 0, end = 0; begin < messages.size(); begin = end) {
    while (end < messages.size() && key_of(messages[end]) == key_of(messages[begin])) ++end;
    const std::span<const PlacedMessage> same(&messages[begin], end - begin);
    if (same.front().message.kind == Kind::joined) {
      if (std::ssize(same) != ranks) continue;
      const PlacedMessage& last =
          *std::ranges::max_element(same, {}, [](const PlacedMessage& one) { return one.message.begin_ns; });
      for (const PlacedMessage& other : same)
        if (possible(last, other))
          arrows.add("last to come", last, other, last.message.begin_ns - other.message.begin_ns);
    } else if (same.size() == 2 && same[0].message.kind != same[1].message.kind) {
      const bool first_sends = same[0].message.kind == Kind::sent;
      const PlacedMessage &from = same[first_sends ? 0 : 1], &to = same[first_sends ? 1 : 0];
      if (possible(from, to)) arrows.add("message", from, to, -1);
    }
  }
  return arrows.text();
}

std::string trace_file(double begin_time, std::span<const ClockOffset> clocks,
                       std::span<const std::string> events) {
  Json ranks = Json::array();
  int rank = 0;
  for (const ClockOffset& clock : clocks)
    ranks.push_back({{"error_us", microseconds(clock.error_ns)},
                     {"offset_us", microseconds(clock.offset_ns)},
                     {"rank", rank++}});
  const Json other{{"begin_time", begin_time}, {"clocks", ranks}, {"format", 1}};
  std::string text =
      fmt::format("{{\"displayTimeUnit\":\"ms\",\"otherData\":{},\"traceEvents\":[\n", other.dump());
  bool first = true;
  for (const std::string& list : events) {
    if (list.empty()) continue;
    if (!std::exchange(first, false)) text += ",\n";
    text += list;
  }
  return text + "\n]}\n";
}

}  // namespace lockstep
