// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Shared parts of the emulated cuda_runtime.h's implementation. One lock protects everything; a kernel runs
// while it is held. A stream's work is a list of operations. An event's record is an operation, and waiting
// for an event runs the list up to it.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "counts.h"
#include "cuda_runtime.h"
#include "memory.h"

namespace lockstep::emulation {

struct Capture;
/// What a piece of a stream's work is, for the counts.
enum class Kind { kernel, clear, upload, download, move, host, nccl };
struct Work {
  std::function<void()> run;
  Kind kind = Kind::kernel;
  std::size_t bytes = 0;
  std::int64_t blocks = 0;
};
using Clock = std::chrono::steady_clock;

/// One cudaEventRecord.
struct Record {
  CUstream_st* stream = nullptr;  ///< stream in which it is pending; null once it has run
  bool done = false;
  int queries = 0;
  Clock::time_point time;
  std::shared_ptr<Capture> capture;  ///< the capture of its stream, if it was recorded during one
  std::size_t position = 0;          ///< position in the capture
  int number = -1;                   ///< of the capture's records
};

struct Operation {
  std::function<void()> work;       ///< exactly one of these three is set
  std::shared_ptr<Record> record;   ///< a record to mark
  std::shared_ptr<Record> awaited;  ///< a record to wait for
};

/// What a graph does, in the order of the calls. A branch is a stream that was captured; the first is the
/// origin. Branches run side by side, in any order that the waits for records allow.
struct GraphWork {
  struct Item {
    std::size_t branch = 0;
    Work work;         ///< exactly one of these three is set
    int record = -1;   ///< number of a record to mark
    int awaited = -1;  ///< number of a record to wait for
  };
  std::vector<Item> items;
  std::size_t num_branches = 1;
  int num_records = 0;
};

struct Capture {
  CUstream_st* origin = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  bool invalid = false;
  GraphWork graph;
  struct Joined {
    CUstream_st* stream;
    std::size_t last = 0;    ///< position after its last operation
    std::size_t joined = 0;  ///< position up to which another stream has waited for it
  };
  std::vector<Joined> streams;  ///< all except the origin, in the order of the graph's branches
  Joined* find(const CUstream_st* stream);
  std::size_t branch_of(const CUstream_st* stream) const;
};

struct Runtime {
  std::mutex lock;
  Memory memory;
  std::set<CUstream_st*> streams;
  std::vector<std::unique_ptr<CUstream_st>> null_streams;  ///< one per device
  std::vector<std::shared_ptr<Capture>> captures;
  std::set<CUstream_st*> queried;
  struct HandedOut {
    const void* group;
    const char* memory;
    std::size_t bytes;
  };
  std::vector<std::unique_ptr<HandedOut>> handed_out;
};
Runtime& runtime();

/// Stores an error for cudaGetLastError, and returns it.
cudaError_t answer(cudaError_t error);
int device_count();
std::size_t device_bytes();
int current_device();
/// Resolves a handle: null is the device's own stream. Returns null if there is no such stream.
CUstream_st* resolve(cudaStream_t stream);
/// Runs the stream's operations, up to and including `until` if it is given.
void drain(CUstream_st* stream, const Record* until = nullptr);
/// Runs all streams of all devices, or only those that blocking calls wait for.
void drain_all(bool blocking_only);
/// With LOCKSTEP_EMULATED_RUN_AHEAD set: runs all operations that need not wait, in all streams except the
/// first, so that streams are as early as possible instead of as late.
void run_ahead();
/// Queues and counts work in a stream that is not captured.
void queue_work(CUstream_st* stream, Work work, bool alone);
/// Queues or captures work, and counts it when it is queued. `alone`: a call of the host does nothing else.
cudaError_t push(CUstream_st* stream, Work work, bool alone = true);
/// enqueue() of a message between ranks.
cudaError_t enqueue_message(cudaStream_t stream, std::function<void()> work, std::size_t sent_bytes);
/// Counts, while the lock is held.
Counts& counting();
bool counts_only();
void count_nccl_query();
void count_nccl_connection();
void count_nccl_unregistered();
/// Memory that a library's group knows; freeing it ends the process. Returns what take_back() takes.
void* hand_out(const void* group, const void* memory, std::size_t bytes);
void take_back(void* handed_out);
/// Takes back everything of a group.
void take_back_all(const void* group);
bool is_handed_out(const void* group, const void* memory, std::size_t bytes);
/// Calls that are illegal while a stream is captured invalidate the capture, as on a GPU.
bool invalidates_captures();
bool invalidates_own_capture(const CUstream_st* stream);

}  // namespace lockstep::emulation

struct CUstream_st {
  int device = 0;
  int number = 0;  ///< in order of creation
  bool non_blocking = true;
  std::deque<lockstep::emulation::Operation> queue;
  std::shared_ptr<lockstep::emulation::Capture> capture;
};
struct CUevent_st {
  bool timing = true;
  std::shared_ptr<lockstep::emulation::Record> record;
};
