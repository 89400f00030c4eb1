// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/checkpoint_writer.h"

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "core/buffer.h"
#include "core/log.h"
#include "core/range.h"
#include "core/start_thread.h"
#include "core/timer.h"
#include "core/trace.h"

namespace lockstep {

namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::int64_t kPage = 4096;
constexpr double kSecondsToEnd = 5;     // for a checkpoint in flight when the writer is destroyed
constexpr double kSecondsToCancel = 3;  // for it to notice the cancellation

std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::size_t total_bytes(std::span<const CheckpointTensor> tensors) {
  std::size_t bytes = 0;
  for (const CheckpointTensor& entry : tensors) bytes += aligned(entry.tensor.size_bytes());
  return bytes;
}

/// Runs `function(part, parts)` on all threads of the pool, or on this thread if there is no pool.
template <typename Function>
void on_all(ThreadPool* pool, Function function) {
  if (pool == nullptr)
    function(0, 1);
  else
    pool->run([&](int thread) { function(thread, pool->size()); });
}

/// A second stream for the copies, and the events that synchronise it with the computing stream.
struct SideStream {
  explicit SideStream(Device& of) : device(of), stream(of), ready(of), copied(of) {}
  Device& device;
  DeviceStream stream;
  DeviceEvent ready, copied;
};

/// Copies of tensors in one block of memory.
class Snapshot {
 public:
  explicit Snapshot(Device* device) {
    if (device != nullptr && !device->is_host()) side_ = std::make_unique<SideStream>(*device);
  }

  void reserve(std::size_t bytes) {
    if (bytes <= memory_.size_bytes()) return;
    memory_ = {};
    // The memory is written with zeros, so its pages exist before the first save.
    memory_ = side_ ? Buffer::pinned(side_->device, bytes) : Buffer(cpu_device(), bytes);
  }

  /// Copies tensors. Copies from a device may still be in progress on return.
  void copy(std::span<const CheckpointTensor> tensors, const CheckpointCopyWays& ways) {
    const std::size_t bytes = total_bytes(tensors);
    reserve(bytes);
    copies_.resize(tensors.size());
    auto* place = static_cast<char*>(memory_.data());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (copies_[i].path != tensors[i].path) copies_[i].path = tensors[i].path;
      copies_[i].tensor = Tensor(place, tensors[i].tensor.dtype(), tensors[i].tensor.shape());
      place += aligned(tensors[i].tensor.size_bytes());
    }
    if (side_) begin_downloads(tensors, ways.stream);
    on_all(ways.pool, [&](int part, int parts) { copy_part(tensors, bytes, part, parts); });
  }

  const DeviceEvent* copied() const { return side_ ? &side_->copied : nullptr; }
  /// The copies of the last copy(); waits until they are complete. Throws Error(device).
  const std::vector<CheckpointTensor>& tensors() const {
    if (side_) side_->copied.wait();
    return copies_;
  }

 private:
  void begin_downloads(std::span<const CheckpointTensor> tensors, void* after) const {
    side_->ready.record(after);
    side_->ready.stream_wait(side_->stream.get());
    for (std::size_t i = 0; i < tensors.size(); ++i)
      if (tensors[i].on_device && tensors[i].tensor.size_bytes() > 0)
        side_->device.download(side_->stream.get(), copies_[i].tensor.raw(), tensors[i].tensor.raw(),
                               tensors[i].tensor.size_bytes());
    side_->copied.record(side_->stream.get());
  }

  /// Copies this part's share of all bytes, except tensors on a device.
  void copy_part(std::span<const CheckpointTensor> tensors, std::size_t bytes, int part, int parts) const {
    const Range own = part_of(static_cast<std::int64_t>(bytes), part, parts, kPage);
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < tensors.size() && begin < own.last; ++i) {
      const auto size = static_cast<std::int64_t>(tensors[i].tensor.size_bytes());
      const std::int64_t first = std::max(own.first - begin, std::int64_t{0});
      const std::int64_t last = std::min(own.last - begin, size);
      if (first < last && !tensors[i].on_device)
        std::memcpy(static_cast<char*>(copies_[i].tensor.raw()) + first,
                    static_cast<const char*>(tensors[i].tensor.raw()) + first,
                    static_cast<std::size_t>(last - first));
      begin += static_cast<std::int64_t>(aligned(static_cast<std::size_t>(size)));
    }
  }

  std::unique_ptr<SideStream> side_;  ///< null: everything is in host memory
  Buffer memory_;
  std::vector<CheckpointTensor> copies_;
};

/// Blocks all signals in this thread and in threads that it starts: other threads handle them.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &previous_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &previous_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t previous_{};
};

}  // namespace

struct CheckpointWriter::Shared {
  Shared(std::shared_ptr<CheckpointStore> where, Device* device)
      : store(std::move(where)), snapshot(device) {}

  const std::shared_ptr<CheckpointStore> store;
  std::thread thread;  // joined or detached by the owner
  std::atomic<bool> cancelled{false};

  // Used by the training loop while not busy, by the writer's thread while busy.
  Snapshot snapshot;
  CheckpointHeader header;
  CheckpointOutcome outcome;
  std::function<void()> before_write;

  std::mutex mutex;
  std::condition_variable changed;
  bool busy = false, ended = false;  // under mutex, as is `finished`
  std::vector<CheckpointOutcome> finished;

  void write();
  void loop();
  bool wait_until(double limit_seconds, FunctionRef<bool()> condition);
};

void CheckpointWriter::Shared::write() {
  const Traced traced("saving", "write a checkpoint");
  const Timer timer;
  try {
    if (before_write) before_write();
    outcome.path = store->save(header, snapshot.tensors(), &cancelled);
  } catch (const Error& error) {
    outcome.error = error;
  } catch (const std::exception& error) {
    outcome.error = Error(ErrorKind::checkpoint, error.what(), store->path_of(header.global_step));
  }
  outcome.write_seconds = timer.seconds();
}

void CheckpointWriter::Shared::loop() {
  name_trace_thread("checkpoint writer");
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [&] { return busy || ended; });
    if (!busy) return;
    lock.unlock();
    write();
    lock.lock();
    finished.push_back(std::move(outcome));
    busy = false;
    changed.notify_all();
  }
}

bool CheckpointWriter::Shared::wait_until(double limit_seconds, FunctionRef<bool()> condition) {
  constexpr double kForEver = 1e9;
  std::unique_lock lock(mutex);
  return changed.wait_for(lock, std::chrono::duration<double>(std::min(limit_seconds, kForEver)),
                          [&] { return condition(); });
}

CheckpointWriter::CheckpointWriter(std::shared_ptr<CheckpointStore> store,
                                   std::span<const CheckpointTensor> tensors, CheckpointCopyWays ways)
    : shared_(std::make_shared<Shared>(std::move(store), ways.device)), ways_(ways) {
  shared_->snapshot.reserve(total_bytes(tensors));
  const NoSignals inherited;
  shared_->thread = start_thread("thread that writes checkpoints", [shared = shared_] { shared->loop(); });
}

CheckpointWriter::~CheckpointWriter() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->ended = true;
  }
  shared_->changed.notify_all();
  bool idle = wait(kSecondsToEnd);
  if (!idle) {
    shared_->cancelled = true;
    idle = wait(kSecondsToCancel);
  }
  if (idle) {
    shared_->thread.join();
    return;
  }
  try {
    log_warning("{}: the disk does not respond; the checkpoint of this step is abandoned",
                shared_->store->path_of(step()));
  } catch (const std::exception&) {  // a destructor must not throw
  }
  shared_->thread.detach();
}

bool CheckpointWriter::busy() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->busy;
}

std::int64_t CheckpointWriter::step() const { return shared_->header.global_step; }

void CheckpointWriter::start(const CheckpointHeader& header, std::span<const CheckpointTensor> tensors) {
  LOCKSTEP_CHECK(!busy(), "the checkpoint of step {} is still being written", step());
  const Timer timer;
  shared_->header = header;
  shared_->snapshot.copy(tensors, ways_);
  shared_->outcome = {.step = header.global_step};
  for (const CheckpointTensor& entry : tensors) shared_->outcome.bytes += entry.tensor.size_bytes();
  shared_->outcome.blocked_seconds = timer.seconds();
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->busy = true;
  }
  shared_->changed.notify_all();
}

void CheckpointWriter::set_before_write(std::function<void()> function) {
  LOCKSTEP_CHECK(!busy());
  shared_->before_write = std::move(function);
}

const DeviceEvent* CheckpointWriter::copied() const { return shared_->snapshot.copied(); }

std::vector<CheckpointOutcome> CheckpointWriter::poll() {
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->finished, {});
}

bool CheckpointWriter::wait(double limit_seconds) const {
  return shared_->wait_until(limit_seconds, [&] { return !shared_->busy; });
}

}  // namespace lockstep
