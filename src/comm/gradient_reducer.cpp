// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/gradient_reducer.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <mutex>
#include <utility>

#include "comm/gradient_reducer_state.h"
#include "core/error.h"
#include "core/range.h"
#include "core/start_thread.h"
#include "core/timer.h"
#include "core/trace.h"

namespace lockstep {

bool GradientReducerOptions::compresses() const {
  if (const auto* const host = std::get_if<HostTreeSum>(&sum))
    return host->nodes != HostTreeSum::Nodes::exact;
  const auto* const device = std::get_if<DeviceTreeSum>(&sum);
  return device != nullptr && device->compress;
}

std::shared_ptr<const Ownership> GradientReducerOptions::ownership() const {
  const auto* const host = std::get_if<HostTreeSum>(&sum);
  return host != nullptr ? host->ownership : nullptr;
}

GradientReducer::GradientReducer(Communicator& communicator, ThreadPool* pool, int shards,
                                 std::int64_t num_elements, std::vector<Range> buckets, Options options)
    : state_(std::make_shared<State>()) {
  State& s = *state_;
  std::int64_t reached = 0, largest = 0;
  for (const Range& bucket : buckets) {
    LOCKSTEP_CHECK(bucket.first == reached && bucket.last >= reached, "bucket [{}, {}) after {}",
                   bucket.first, bucket.last, reached);
    reached = bucket.last;
    largest = std::max(largest, bucket.size());
  }
  LOCKSTEP_CHECK(reached == num_elements, "buckets cover {} of {} elements", reached, num_elements);
  s.set_options(std::move(options));
  if (communicator.size() == 1 || (s.place.direct && !s.place.direct->blocks())) s.overlap = false;
  if (const Ownership* const ownership = s.host_tree.ownership.get())
    LOCKSTEP_CHECK(ownership->ranks() == communicator.size() &&
                       std::ranges::equal(ownership->buckets(), buckets,
                                          [](const Range& a, const Range& b) { return a.last == b.last; }),
                   "parts of {} ranks", ownership->ranks());
  s.num_elements = num_elements;
  s.leaves = shards;
  s.buckets = std::move(buckets);
  for (std::size_t i = 0; i < s.buckets.size(); ++i) {
    s.names.push_back(fmt::format("gradients {} of {}", i + 1, s.buckets.size()));
  }
  s.communicator = communicator.duplicate("gradients");
  const Range mine = shards_of_rank(communicator.rank(), communicator.size(), shards);
  s.subtrees = maximal_subtrees(static_cast<int>(mine.first), static_cast<int>(mine.last), shards);
  s.allocate(communicator, s.overlap ? nullptr : pool, shards);
  s.stage();
  if (!s.fast && s.place.direct) {
    s.tree.emplace(*s.place.direct, shards, largest, s.compress,
                   TreeReduction::Place{*s.place.device, s.place.direct->stream(), *s.place.arithmetic});
    s.register_memory();
  } else if (!s.fast) {
    // With shared memory it only gathers, which needs no memory of its own.
    s.tree.emplace(*s.communicator, s.overlap ? nullptr : pool, shards, s.host ? 0 : largest,
                   s.host_tree.piece_bytes, s.compress);
  }
  if (s.host_tree.nodes == HostTreeSum::Nodes::rounded_with_feedback) {
    s.feedback = std::make_unique<ErrorFeedback>(shards, num_elements);
    s.tree->give_back_errors(*s.feedback);
    if (s.host) s.host->give_back_errors(*s.feedback);
    for (const NodePart& part : node_parts())
      if (part.rank == communicator.rank())
        s.feedback_bytes += static_cast<std::size_t>(part.elements.size()) * ErrorFeedback::kElementBytes;
  }
  s.queue.reserve(s.buckets.size());
  s.started.resize(s.buckets.size());
  // The thread holds the state, not this object.
  if (s.overlap)
    s.thread = start_thread("communication thread", [state = state_] {
      name_trace_thread("communication");
      state->serve();
    });
}

GradientReducer::~GradientReducer() {
  State& s = *state_;
  if (!s.thread.joinable()) return;
  bool busy = false;
  {
    const std::lock_guard lock(s.mutex);
    s.stop = true;
    busy = s.finished < s.taken;
  }
  s.work.notify_all();
  if (busy) {
    std::fputs("lockstep: a gradient reducer was destroyed during a reduction; its thread is detached\n",
               stderr);
    s.thread.detach();
  } else {
    s.thread.join();
  }
}

int GradientReducer::num_partials() const { return static_cast<int>(state_->partials.size()); }
Subtree GradientReducer::partial_subtree(int k) const {
  return state_->subtrees[static_cast<std::size_t>(k)];
}
float* GradientReducer::partial(int k) { return state_->partials[static_cast<std::size_t>(k)]; }
const std::vector<Range>& GradientReducer::buckets() const { return state_->buckets; }
float* GradientReducer::result() { return state_->result; }
const Communicator& GradientReducer::communicator() const { return *state_->communicator; }
bool GradientReducer::overlaps() const {
  const State& s = *state_;
  return s.overlap || (s.place.direct && !s.place.direct->blocks());
}
bool GradientReducer::shares_memory() const { return state_->host != nullptr; }
const std::string& GradientReducer::why_not_shared() const { return state_->why_not_shared; }
bool GradientReducer::compresses() const { return state_->compress; }
ErrorFeedback* GradientReducer::feedback() const { return state_->feedback.get(); }
double GradientReducer::seconds_blocked() const { return state_->seconds_blocked; }

void GradientReducer::start(int bucket) {
  State& s = *state_;
  char& started = s.started[static_cast<std::size_t>(bucket)];
  LOCKSTEP_CHECK(started == 0, "bucket {} was started twice", bucket);
  started = 1;
  const Timer timer;
  if (s.returned) s.written[static_cast<std::size_t>(bucket)]->record(s.place.stream);
  if (s.overlap) {
    {
      const std::lock_guard lock(s.mutex);
      s.queue.push_back(bucket);
    }
    s.work.notify_one();
  } else {
    s.queue.push_back(bucket);
    s.host ? s.start_in_shared_memory(bucket) : s.reduce(bucket);
  }
  s.seconds_blocked += timer.seconds();
}

int GradientReducer::num_done() const {
  State& s = *state_;
  if (!s.overlap) return s.host ? s.host->num_finished() : static_cast<int>(s.queue.size());
  const std::lock_guard lock(s.mutex);
  return s.error ? 0 : static_cast<int>(s.finished);
}

void GradientReducer::wait_for(int count) {
  State& s = *state_;
  LOCKSTEP_CHECK(count <= std::ssize(s.queue), "{} of {} buckets were started", s.queue.size(), count);
  if (!s.overlap) {
    const Timer timer;
    if (s.host) s.host->finish(count);
    s.seconds_blocked += timer.seconds();
    return;
  }
  std::unique_lock lock(s.mutex);
  s.wait(lock, [&] { return s.error || s.finished >= static_cast<std::size_t>(count); });
}

void GradientReducer::wait_all() {
  State& s = *state_;
  LOCKSTEP_CHECK(s.queue.size() == s.buckets.size(), "{} of {} buckets were started", s.queue.size(),
                 s.buckets.size());
  std::exception_ptr error;
  if (s.overlap) {
    std::unique_lock lock(s.mutex);
    s.wait(lock, [&s] { return s.finished == s.queue.size(); });
    s.taken = s.finished = 0;
    error = std::exchange(s.error, nullptr);
  }
  if (s.host && !error) {
    const Timer timer;
    s.host->finish_all();
    s.seconds_blocked += timer.seconds();
  }
  if (s.place.direct) s.place.direct->check();
  if (s.returned && !error) s.returned->stream_wait(s.place.stream);
  s.queue.clear();
  std::fill(s.started.begin(), s.started.end(), char{0});
  if (error) std::rethrow_exception(error);
}

void GradientReducer::gather(float* data, const char* what) {
  State& s = *state_;
  LOCKSTEP_CHECK(s.host_tree.ownership && s.queue.empty(), "gather() needs parts, and no sum in progress");
  if (!s.tree) return;
  const Timer timer;
  for (int bucket = 0; bucket < static_cast<int>(s.buckets.size()); ++bucket)
    s.tree->gather(data, s.host_tree.ownership->limits(bucket), what);
  s.seconds_blocked += timer.seconds();
}

std::vector<NodePart> GradientReducer::node_parts() const {
  const State& s = *state_;
  if (!s.feedback) return {};
  std::vector<NodePart> parts = nodes_inside_ranks(s.leaves, s.communicator->size(), s.num_elements);
  if (s.communicator->size() == 1) return parts;
  const auto add = [&](const NodePart& part) {
    if (part.elements.size() > 0) parts.push_back(part);
  };
  for (int bucket = 0; bucket < static_cast<int>(s.buckets.size()); ++bucket) {
    const Range range = s.buckets[static_cast<std::size_t>(bucket)];
    const auto limits =
        s.host_tree.ownership ? s.host_tree.ownership->limits(bucket) : std::span<const std::int64_t>();
    if (s.host)
      s.host->for_node_parts(range, limits, add);
    else if (s.host_tree.ownership)
      s.tree->for_node_parts(limits, add);
    else
      s.tree->for_node_parts(range.first, range.size(), add);
  }
  return parts;
}

std::size_t GradientReducer::memory_bytes() const {
  std::size_t bytes = state_->tree ? state_->tree->scratch_bytes() : 0;
  if (state_->host) bytes += state_->host->memory_bytes();
  bytes += state_->feedback_bytes;
  for (const Buffer& buffer : state_->memory) bytes += buffer.size_bytes();
  for (const Buffer& buffer : state_->staging) bytes += buffer.size_bytes();
  return bytes;
}

std::int64_t GradientReducer::bytes_per_step() const {
  const State& s = *state_;
  const std::int64_t ranks = s.communicator->size();
  if (!s.tree) return 2 * s.num_elements * std::int64_t{sizeof(float)} / ranks * (ranks - 1);
  std::int64_t bytes = 0;
  if (s.host_tree.ownership && ranks > 1) {
    for (int bucket = 0; bucket < static_cast<int>(s.buckets.size()); ++bucket) {
      const std::span<const std::int64_t> limits = s.host_tree.ownership->limits(bucket);
      bytes += (s.host ? s.host->bytes_read(s.buckets[static_cast<std::size_t>(bucket)], limits)
                       : s.tree->bytes_reduced(limits)) +
               s.tree->bytes_gathered(limits);
    }
    return bytes;
  }
  for (const Range& bucket : s.buckets)
    bytes += s.host ? s.host->bytes_read(bucket, {}) : s.tree->bytes_sent(bucket.size());
  return bytes;
}

}  // namespace lockstep
