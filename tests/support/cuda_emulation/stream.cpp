// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Streams, events and launches of the emulated GPU.
#include "pretended_time.h"
#include "runtime.h"

#include <algorithm>
#include <cstdlib>
#include <map>

namespace lockstep::emulation {
namespace {

constexpr int kQueriesUntilReady =
    3;  // queries of an event without a waiter until it is ready, so that polling terminates

}  // namespace

CUstream_st* resolve(cudaStream_t stream) {
  Runtime& r = runtime();
  if (stream != nullptr) return r.streams.count(stream) != 0 ? stream : nullptr;
  while (static_cast<int>(r.null_streams.size()) <= current_device()) {
    r.null_streams.push_back(std::make_unique<CUstream_st>());
    r.null_streams.back()->device = static_cast<int>(r.null_streams.size()) - 1;
    r.null_streams.back()->non_blocking = false;
  }
  return r.null_streams[static_cast<std::size_t>(current_device())].get();
}

namespace {

/// What the stream's first operation waits for; null if it can run.
std::shared_ptr<Record> awaited_by(const CUstream_st& stream) {
  const std::shared_ptr<Record>& awaited = stream.queue.front().awaited;
  return awaited && !awaited->done && awaited->stream != nullptr ? awaited : nullptr;
}

void run_first(CUstream_st& stream) {
  const Operation operation = std::move(stream.queue.front());
  stream.queue.pop_front();
  if (operation.work) operation.work();
  if (operation.record) {
    operation.record->done = true;
    operation.record->stream = nullptr;
    operation.record->time = Clock::now() + pretended_time();
  }
}

/// With LOCKSTEP_EMULATED_INTERLEAVED set: runs an operation in each other stream that need not wait.
void run_others(const CUstream_st* stream) {
  static const bool wanted = std::getenv("LOCKSTEP_EMULATED_INTERLEAVED") != nullptr;
  if (!wanted) return;
  for (CUstream_st* other : runtime().streams)
    if (other != stream && !other->capture && !other->queue.empty() && awaited_by(*other) == nullptr)
      run_first(*other);
}

}  // namespace

// A stream that waits keeps the operation in its queue, because others may run while it does.
void drain(CUstream_st* stream, const Record* until) {
  while (!stream->queue.empty() && (until == nullptr || !until->done)) {
    if (const std::shared_ptr<Record> awaited = awaited_by(*stream)) {
      drain(awaited->stream, awaited.get());
      continue;
    }
    const bool marks = stream->queue.front().record != nullptr;
    run_first(*stream);
    if (marks) run_ahead();
    run_others(stream);
  }
}

void drain_all(bool blocking_only) {
  Runtime& r = runtime();
  for (const auto& stream : r.null_streams) drain(stream.get());
  for (CUstream_st* stream : r.streams)
    if (!blocking_only || !stream->non_blocking) drain(stream);
}

Capture::Joined* Capture::find(const CUstream_st* stream) {
  for (Joined& one : streams)
    if (one.stream == stream) return &one;
  return nullptr;
}

std::size_t Capture::branch_of(const CUstream_st* stream) const {
  const auto found = std::ranges::find(streams, stream, &Joined::stream);
  return found == streams.end() ? 0 : static_cast<std::size_t>(found - streams.begin()) + 1;
}

void run_ahead() {
  static const bool wanted = std::getenv("LOCKSTEP_EMULATED_RUN_AHEAD") != nullptr;
  if (!wanted) return;
  for (CUstream_st* stream : runtime().streams)
    while (stream->number != 0 && !stream->capture && !stream->queue.empty() &&
           awaited_by(*stream) == nullptr)
      run_first(*stream);
}

Counts& counting() {
  static Counts counts;
  return counts;
}

namespace {

bool only_counting = false;

void count(const Work& work, bool alone) {
  Counts& counts = counting();
  const auto bytes = static_cast<std::int64_t>(work.bytes);
  counts.calls += alone ? 1 : 0;
  counts.kernels += work.kind == Kind::kernel ? 1 : 0;
  counts.blocks += work.blocks;
  counts.nccl_calls += work.kind == Kind::nccl ? 1 : 0;
  counts.copies += work.kind == Kind::clear || work.kind == Kind::upload || work.kind == Kind::download ||
                           work.kind == Kind::move
                       ? 1
                       : 0;
  if (work.kind == Kind::upload) counts.uploaded_bytes += bytes;
  if (work.kind == Kind::download) counts.downloaded_bytes += bytes;
  if (work.kind == Kind::move) counts.moved_bytes += bytes;
  if (work.kind == Kind::nccl) counts.nccl_sent_bytes += bytes;
}

/// Only copies and host functions run while work is only counted.
bool is_left_out(Kind kind) {
  return only_counting && (kind == Kind::kernel || kind == Kind::clear || kind == Kind::nccl);
}

}  // namespace

void count_nccl_query() {
  const std::lock_guard guard(runtime().lock);
  ++counting().nccl_queries;
}
void count_nccl_connection() {
  const std::lock_guard guard(runtime().lock);
  ++counting().nccl_connections;
}

void count_nccl_unregistered() {
  const std::lock_guard guard(runtime().lock);
  ++counting().nccl_unregistered;
}

bool counts_only() { return only_counting; }

Counts counts() {
  const std::lock_guard guard(runtime().lock);
  return counting();
}

void reset_counts() {
  const std::lock_guard guard(runtime().lock);
  counting() = {};
}

void count_only() {
  const std::lock_guard guard(runtime().lock);
  only_counting = true;
}

cudaError_t push(CUstream_st* stream, Work work, bool alone) {
  if (stream == nullptr || stream->device != current_device()) return answer(cudaErrorInvalidResourceHandle);
  if (stream->capture) {
    if (stream->capture->invalid) return answer(cudaErrorStreamCaptureInvalidated);
    std::vector<GraphWork::Item>& items = stream->capture->graph.items;
    items.push_back({.branch = stream->capture->branch_of(stream), .work = std::move(work)});
    if (Capture::Joined* one = stream->capture->find(stream)) one->last = items.size();
    return cudaSuccess;
  }
  queue_work(stream, std::move(work), alone);
  run_ahead();
  return cudaSuccess;
}

void queue_work(CUstream_st* stream, Work work, bool alone) {
  count(work, alone);
  if (is_left_out(work.kind)) work.run = [] {};
  stream->queue.push_back({std::move(work.run), nullptr, nullptr});
}

bool invalidates_captures() {
  bool found = false;
  for (const auto& capture : runtime().captures)
    if (capture->mode != cudaStreamCaptureModeRelaxed) {
      capture->invalid = true;
      found = true;
    }
  return found;
}

bool invalidates_own_capture(const CUstream_st* stream) {
  if (!stream->capture) return false;
  stream->capture->invalid = true;
  return true;
}

namespace {
/// Without a limit of its own, static and dynamic. The static memory of a kernel is not known here: it counts
/// as kStaticBytes, which is more than any has that is launched with dynamic memory.
constexpr std::size_t kSharedBytes = std::size_t{48} << 10, kStaticBytes = std::size_t{4} << 10;

/// The most dynamic shared memory of a kernel, by the kernel's address. Locked like the runtime.
std::map<const void*, std::size_t>& shared_limits() {
  static std::map<const void*, std::size_t> limits;
  return limits;
}
}  // namespace

cudaError_t limit_dynamic_shared(const void* function, cudaFuncAttribute attribute, int bytes) {
  if (function == nullptr || attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || bytes < 0 ||
      static_cast<std::size_t>(bytes) > kMostSharedBytes)
    return answer(cudaErrorInvalidValue);
  const std::lock_guard guard(runtime().lock);
  shared_limits()[function] = static_cast<std::size_t>(bytes);
  return cudaSuccess;
}

cudaError_t launch(const cudaLaunchConfig_t& config, const void* function, std::function<void()> kernel) {
  const dim3 grid = config.gridDim, block = config.blockDim;
  const std::size_t threads = std::size_t{block.x} * block.y * block.z;
  if (threads == 0 || threads > 1024 || block.z > 64 || grid.x == 0 || grid.x > 0x7FFFFFFFU || grid.y == 0 ||
      grid.y > 65535 || grid.z == 0 || grid.z > 65535)
    return answer(cudaErrorInvalidConfiguration);
  const std::lock_guard guard(runtime().lock);
  const std::size_t shared = config.dynamicSmemBytes;
  const auto limit = shared_limits().find(function);
  const std::size_t without_asking = kSharedBytes - kStaticBytes;
  if (shared > (limit == shared_limits().end() ? without_asking : std::max(without_asking, limit->second)))
    return answer(cudaErrorInvalidValue);
  const std::int64_t blocks = std::int64_t{grid.x} * grid.y * grid.z;
  return push(resolve(config.stream),
              {[grid, block, shared, kernel = std::move(kernel)] { run_grid(grid, block, shared, kernel); },
               Kind::kernel, 0, blocks});
}

cudaError_t enqueue(cudaStream_t stream, std::function<void()> work) {
  const std::lock_guard guard(runtime().lock);
  return push(resolve(stream), {std::move(work)});
}

cudaError_t enqueue_message(cudaStream_t stream, std::function<void()> work, std::size_t sent_bytes) {
  const std::lock_guard guard(runtime().lock);
  return push(resolve(stream), {std::move(work), Kind::nccl, sent_bytes});
}

}  // namespace lockstep::emulation

using namespace lockstep::emulation;

// Streams and events
// -------------------------------------------------------------------------------------------------------------

cudaError_t cudaDeviceGetStreamPriorityRange(int* leastPriority, int* greatestPriority) {
  *leastPriority = 0;
  *greatestPriority = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* pStream, unsigned int flags) {
  Runtime& r = runtime();
  const std::lock_guard guard(r.lock);
  if (device_count() == 0) return answer(cudaErrorNoDevice);
  auto stream = std::make_unique<CUstream_st>();
  stream->device = current_device();
  stream->non_blocking = flags == cudaStreamNonBlocking;
  static int made = 0;
  stream->number = made++;
  *pStream = stream.release();
  r.streams.insert(*pStream);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* pStream, unsigned int flags, int) {
  return cudaStreamCreateWithFlags(pStream, flags);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  Runtime& r = runtime();
  const std::lock_guard guard(r.lock);
  if (r.streams.count(stream) == 0) return answer(cudaErrorInvalidResourceHandle);
  drain(stream);
  r.streams.erase(stream);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const std::lock_guard guard(runtime().lock);
  CUstream_st* target = resolve(stream);
  if (target == nullptr) return answer(cudaErrorInvalidResourceHandle);
  if (invalidates_own_capture(target)) return answer(cudaErrorStreamCaptureUnsupported);
  if (!target->queue.empty()) ++counting().waits;
  drain(target);
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  Runtime& r = runtime();
  const std::lock_guard guard(r.lock);
  CUstream_st* target = resolve(stream);
  if (target == nullptr) return answer(cudaErrorInvalidResourceHandle);
  if (invalidates_own_capture(target)) return answer(cudaErrorStreamCaptureUnsupported);
  ++counting().queries;
  if (target->queue.empty()) return cudaSuccess;
  if (r.queried.insert(target).second) return cudaErrorNotReady;
  r.queried.erase(target);
  drain(target);
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int) {
  const std::lock_guard guard(runtime().lock);
  CUstream_st* target = resolve(stream);
  if (target == nullptr || event == nullptr) return answer(cudaErrorInvalidResourceHandle);
  const std::shared_ptr<Record> record = event->record;
  if (!record) return cudaSuccess;
  if (record->capture) {
    Capture& capture = *record->capture;
    if (!target->capture) {  // the stream joins the capture
      target->capture = record->capture;
      capture.streams.push_back({target});
      capture.graph.num_branches = capture.streams.size() + 1;
    }
    if (target->capture != record->capture) return answer(cudaErrorStreamCaptureUnsupported);
    if (record->stream == target) return cudaSuccess;
    if (Capture::Joined* one = capture.find(record->stream))
      one->joined = std::max(one->joined, record->position);
    capture.graph.items.push_back(
        {.branch = capture.branch_of(target), .work = {}, .awaited = record->number});
    if (Capture::Joined* one = capture.find(target)) one->last = capture.graph.items.size();
    return cudaSuccess;
  }
  if (target->capture) {
    target->capture->invalid = true;
    return answer(cudaErrorStreamCaptureUnsupported);
  }
  target->queue.push_back({nullptr, nullptr, record});
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void* userData) {
  const std::lock_guard guard(runtime().lock);
  return push(resolve(stream), {[=] { fn(userData); }, Kind::host});
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  if (device_count() == 0) return answer(cudaErrorNoDevice);
  *event = new CUevent_st{(flags & cudaEventDisableTiming) == 0, nullptr};
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const std::lock_guard guard(runtime().lock);
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const std::lock_guard guard(runtime().lock);
  CUstream_st* target = resolve(stream);
  if (target == nullptr || event == nullptr) return answer(cudaErrorInvalidResourceHandle);
  event->record = std::make_shared<Record>();
  event->record->stream = target;
  if (target->capture) {
    GraphWork& graph = target->capture->graph;
    event->record->capture = target->capture;
    event->record->position = graph.items.size();
    event->record->number = graph.num_records++;
    graph.items.push_back(
        {.branch = target->capture->branch_of(target), .work = {}, .record = event->record->number});
    return cudaSuccess;
  }
  target->queue.push_back({nullptr, event->record, nullptr});
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const std::lock_guard guard(runtime().lock);
  ++counting().queries;
  const std::shared_ptr<Record> record = event->record;
  if (!record || record->done) return cudaSuccess;
  if (record->capture) return answer(cudaErrorCapturedEvent);
  if (++record->queries <= kQueriesUntilReady) return cudaErrorNotReady;
  drain(record->stream, record.get());
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const std::lock_guard guard(runtime().lock);
  const std::shared_ptr<Record> record = event->record;
  if (!record || record->done) return cudaSuccess;
  if (record->capture) return answer(cudaErrorCapturedEvent);
  ++counting().waits;
  drain(record->stream, record.get());
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  const std::lock_guard guard(runtime().lock);
  if (!start->timing || !end->timing || !start->record || !end->record)
    return answer(cudaErrorInvalidResourceHandle);
  if (!start->record->done || !end->record->done) return cudaErrorNotReady;
  *ms = std::chrono::duration<float, std::milli>(end->record->time - start->record->time).count();
  return cudaSuccess;
}
