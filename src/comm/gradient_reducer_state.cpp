// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/gradient_reducer_state.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "comm/vector_add.h"
#include "comm/watchdog.h"
#include "core/error.h"
#include "core/range.h"
#include "core/timer.h"

namespace lockstep {

namespace {
// The watchdog's time after its limit, to query the other ranks and to end the run.
constexpr double kGraceSeconds = 10;
}  // namespace

void GradientReducer::State::set_options(Options options) {
  compress = options.compresses();
  overlap = options.overlap;
  fast = std::holds_alternative<FastSum>(options.sum);
  if (auto* const tree_on_host = std::get_if<HostTreeSum>(&options.sum)) host_tree = std::move(*tree_on_host);
  if (auto* const tree_on_device = std::get_if<DeviceTreeSum>(&options.sum))
    place = std::move(tree_on_device->place);
  if (auto* const fast_sum = std::get_if<FastSum>(&options.sum); fast_sum != nullptr && fast_sum->place)
    place = std::move(*fast_sum->place);
  if (place.device == nullptr) place.device = &cpu_device();
  if (place.arithmetic == nullptr) place.arithmetic = &host_arithmetic();
}

void GradientReducer::State::stage() {
  if (place.device->is_host() || communicator->size() == 1 || place.direct) {
    host_partials = partials;
    host_result = result;
  }
  if (place.device->is_host() || communicator->size() == 1) return;
  for (std::size_t i = 0; i < buckets.size(); ++i)
    written.push_back(std::make_unique<DeviceEvent>(*place.device));
  returned.emplace(*place.device);
  if (place.direct) return;
  for (const Buffer& buffer : memory) staging.push_back(Buffer::pinned(*place.device, buffer.size_bytes()));
  for (std::size_t k = 0; k < partials.size(); ++k)
    host_partials.push_back(static_cast<float*>(staging[k].data()));
  host_result = static_cast<float*>(staging.front().data());
  copies.emplace(*place.device);
}

void GradientReducer::State::fetch(int bucket) {
  if (!returned) return;
  const Range range = buckets[static_cast<std::size_t>(bucket)];
  written[static_cast<std::size_t>(bucket)]->stream_wait(place.direct ? place.direct->stream()
                                                                      : copies->get());
  if (place.direct) return;
  for (std::size_t k = 0; k < partials.size(); ++k)
    place.device->download(copies->get(), host_partials[k] + range.first, partials[k] + range.first,
                           static_cast<std::size_t>(range.size()) * sizeof(float));
  copies->synchronize();
}

void GradientReducer::State::give_back(const Range& range) {
  if (place.direct) returned->record(place.direct->stream());
  if (!copies) return;
  place.device->upload(copies->get(), result + range.first, host_result + range.first,
                       static_cast<std::size_t>(range.size()) * sizeof(float));
  returned->record(copies->get());
}

void GradientReducer::State::start_in_shared_memory(int bucket) {
  const auto i = static_cast<std::size_t>(bucket);
  host->start(buckets[i],
              host_tree.ownership ? host_tree.ownership->limits(bucket) : std::span<const std::int64_t>(),
              names[i].c_str());
}

/// The partials and the result.
void GradientReducer::State::allocate(Communicator& group, ThreadPool* pool, int shards) {
  if (host_tree.shared_memory && group.size() > 1)
    host = HostSum::create(*communicator, pool, shards, num_elements, compress, why_not_shared);
  if (!host)
    for (std::size_t k = 0; k < std::max<std::size_t>(subtrees.size(), 1); ++k)
      memory.emplace_back(*place.device, static_cast<std::size_t>(num_elements) * sizeof(float));
  for (std::size_t k = 0; k < subtrees.size(); ++k)
    partials.push_back(host ? host->partial(static_cast<int>(k)) : static_cast<float*>(memory[k].data()));
  result = host ? host->result() : static_cast<float*>(memory.front().data());
}

/// What the tree's messages are sent from and received into. NCCL forbids calls in which some ranks have
/// registered memory and others not, so all ranks register everything, or nothing.
void GradientReducer::State::register_memory() {
  char complete = 1;
  const auto add = [&](const Buffer& buffer) {
    if (buffer.size_bytes() == 0) return;
    auto owner = place.direct->register_memory(buffer.data(), buffer.size_bytes());
    complete = owner != nullptr ? complete : 0;
    registered.push_back(std::move(owner));
  };
  for (const Buffer& buffer : memory) add(buffer);
  for (const Buffer* const buffer : tree->scratch()) add(*buffer);
  std::vector<char> ranks(static_cast<std::size_t>(communicator->size()));
  communicator->allgather(&complete, sizeof complete, ranks.data(), "registered memory");
  if (std::ranges::find(ranks, 0) != ranks.end()) registered.clear();
}

void GradientReducer::State::reduce(int bucket) {
  if (communicator->size() == 1) {  // the one partial is the total; of one leaf, nobody has rounded it
    const Range& all = buckets[static_cast<std::size_t>(bucket)];
    if (compress && subtrees.front().size() == 1)
      place.arithmetic->round(place.stream, all.size(), result + all.first);
    return;
  }
  const Range range = buckets[static_cast<std::size_t>(bucket)];
  const char* what = names[static_cast<std::size_t>(bucket)].c_str();
  fetch(bucket);
  if (host) {
    start_in_shared_memory(bucket);
    host->finish(static_cast<int>(taken));
  } else if (fast) {
    reduce_fast(range, what);
  } else if (host_tree.ownership) {
    tree->reduce(host_partials, host_result, host_tree.ownership->limits(bucket), what);
  } else {
    tree->sum(host_partials, host_result, range.first, range.size(), what);
  }
  give_back(range);
}

void GradientReducer::State::reduce_fast(const Range& range, const char* what) {
  float* const sum = host_result + range.first;
  if (place.direct) {
    void* const stream = place.direct->stream();
    if (host_partials.empty())
      place.device->zero(stream, sum, static_cast<std::size_t>(range.size()) * sizeof(float));
    for (std::size_t k = 1; k < host_partials.size(); ++k)
      place.arithmetic->add(stream, range.size(), sum, host_partials[k] + range.first);
    return place.direct->allreduce_sum_fast(sum, static_cast<std::size_t>(range.size()), what);
  }
  if (host_partials.empty()) std::memset(sum, 0, static_cast<std::size_t>(range.size()) * sizeof(float));
  for (std::size_t k = 1; k < host_partials.size(); ++k)
    vector_add(sum, host_partials[k] + range.first, range.size());
  communicator->allreduce_sum_fast(sum, static_cast<std::size_t>(range.size()), what);
}

void GradientReducer::State::serve() {
  std::unique_lock lock(mutex);
  while (true) {
    work.wait(lock, [this] { return stop || taken < queue.size(); });
    if (stop) return;
    const int bucket = queue[taken++];
    if (!error) {
      lock.unlock();
      std::exception_ptr caught;
      try {
        reduce(bucket);
      } catch (...) {
        caught = std::current_exception();
      }
      lock.lock();
      error = caught;
    }
    ++finished;
    done.notify_all();
  }
}

/// Waits for the communication thread until `ended`, with the mutex held; at most as long as the watchdog
/// lets a phase take.
void GradientReducer::State::wait(std::unique_lock<std::mutex>& lock, FunctionRef<bool()> ended) {
  const Timer timer;
  if (const double limit = communication_timeout_seconds(); limit > 0) {
    // The watchdog ends the run before this limit, unless each single call is short and only their sum is
    // late.
    const double patience = Watchdog::kLongPhaseFactor * limit + kGraceSeconds;
    LOCKSTEP_REQUIRE(done.wait_for(lock, std::chrono::duration<double>(patience), ended),
                     ErrorKind::communication,
                     "the gradients were not reduced in {} s: {} of {} buckets are done", patience, finished,
                     queue.size());
  } else {
    done.wait(lock, ended);
  }
  seconds_blocked += timer.seconds();
}

}  // namespace lockstep
