// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What the files behind the emulated cuda_runtime.h share. One lock guards everything; a kernel runs while it
// is held. Work of a stream is a list of operations; an event's record is one of them, and waiting for an
// event runs the list up to it.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "cuda_runtime.h"
#include "memory.h"

namespace lockstep::emulation {

struct Capture;
using Clock = std::chrono::steady_clock;

/// One cudaEventRecord.
struct Record {
  CUstream_st* stream = nullptr;  ///< in which it waits to run; null once it has run
  bool done = false;
  int queries = 0;
  Clock::time_point time;
  std::shared_ptr<Capture> capture;  ///< recorded while its stream was captured
  std::size_t position = 0;          ///< in the capture
};

struct Operation {
  std::function<void()> work;       ///< or
  std::shared_ptr<Record> record;   ///< a record to be marked, or
  std::shared_ptr<Record> awaited;  ///< a record to be waited for
};

struct Capture {
  CUstream_st* origin = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  bool invalid = false;
  std::vector<std::function<void()>> work;
  struct Joined {
    CUstream_st* stream;
    std::size_t last = 0;    ///< position behind its last operation
    std::size_t joined = 0;  ///< position up to which another stream has waited for it
  };
  std::vector<Joined> streams;  ///< besides the origin
  Joined* find(const CUstream_st* stream);
};

struct Runtime {
  std::mutex lock;
  Memory memory;
  std::set<CUstream_st*> streams;
  std::vector<std::unique_ptr<CUstream_st>> null_streams;  ///< one per device
  std::vector<std::shared_ptr<Capture>> captures;
  std::set<CUstream_st*> queried;
};
Runtime& runtime();

/// Remembers an error for cudaGetLastError.
cudaError_t answer(cudaError_t error);
int device_count();
std::size_t device_bytes();
int current_device();
/// The stream; the device's own for null; null if there is no such stream.
CUstream_st* resolve(cudaStream_t stream);
/// Runs the stream's operations, up to and with `until` if it is given.
void drain(CUstream_st* stream, const Record* until = nullptr);
/// All streams of all devices, or those only that blocking calls wait for.
void drain_all(bool blocking_only);
/// With LOCKSTEP_EMULATED_RUN_AHEAD in the environment all streams but the first that was made are as early
/// as they may be, not as late: does what none of them has to wait for.
void run_ahead();
/// Queues or captures work.
cudaError_t push(CUstream_st* stream, std::function<void()> work);
/// What may not be called while a stream is captured spoils the capture, as on a GPU.
bool spoils_captures();
bool spoils_own_capture(const CUstream_st* stream);

}  // namespace lockstep::emulation

struct CUstream_st {
  int device = 0;
  int number = 0;  ///< in the order of their making
  bool non_blocking = true;
  std::deque<lockstep::emulation::Operation> queue;
  std::shared_ptr<lockstep::emulation::Capture> capture;
};
struct CUevent_st {
  bool timing = true;
  std::shared_ptr<lockstep::emulation::Record> record;
};
