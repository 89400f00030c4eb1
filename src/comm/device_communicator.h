// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Communicators between device memories: their data are in device memory, and their calls only add work to a
// stream. The library that implements them is optional. The code that links it registers a factory: with
// NCCL, the GPU module does so when it is loaded.
#pragma once

#include <exception>
#include <memory>
#include <span>
#include <string>

#include "comm/communicator.h"
#include "core/device.h"

namespace lockstep {

/// A Communicator whose transfers run in the order of stream(). Unless it blocks(), calls return at once, and
/// check() or a later call reports a failure.
class DeviceCommunicator : public Communicator {
 public:
  DeviceCommunicator(int rank, int size, std::string name);
  ~DeviceCommunicator() override;
  virtual void* stream() const = 0;
  /// A call waits for the stream and for the other ranks, so it may deserve a thread of its own.
  virtual bool blocks() const { return false; }
  /// Throws Error(communication) if the library has reported an error since the last call. Cheap.
  virtual void check() = 0;
  /// What the ranks will use.
  struct Uses {
    std::span<const int> peers;  ///< exchange(); two ranks are each other's
    bool allreduces = false;     ///< allreduce_sum_fast()
  };
  /// All ranks, once, before other calls: makes each kind of call with a few bytes, and an allgather, and
  /// waits until they are done. Libraries connect ranks at their first message, which takes seconds on a
  /// large machine: the limit is that of the start.
  virtual void connect(const Uses& uses) = 0;
  /// All ranks, with the same size: zeroed device memory for messages, 256-byte aligned, which lives as long
  /// as the communicator. Where the library has such memory, other ranks reach it without copies. For small
  /// messages: it is never given back.
  virtual void* message_memory(std::size_t bytes) = 0;
  /// Tells the library of memory that messages are sent from and received into, so that it needs no copies of
  /// its own. The returned owner must be destroyed before the memory is freed; null: the library does not
  /// want to know.
  virtual std::shared_ptr<void> register_memory(void* memory, std::size_t bytes) = 0;
  /// Ends the group without waiting for anybody: transfers that are not done are dropped, and later calls
  /// throw Error(communication).
  virtual void abandon() noexcept = 0;

  // It belongs to one stream, so there is one of it.
  std::unique_ptr<Communicator> duplicate(std::string name) final;
  std::unique_ptr<Communicator> split_by_host(std::string name) final;
  [[noreturn]] void abort(int code) noexcept final;
};

/// Calls abandon() of all communicators of this process. A device frees no memory while a transfer waits for
/// a rank that does not come, so an error must end the communicators before it destroys buffers.
void abandon_device_communicators() noexcept;

/// The member or variable that is destroyed first: an exception that destroys it ends the communicators.
class AbandonOnError {
 public:
  AbandonOnError() = default;
  ~AbandonOnError() {
    if (std::uncaught_exceptions() > before_) abandon_device_communicators();
  }
  AbandonOnError(const AbandonOnError&) = delete;
  AbandonOnError& operator=(const AbandonOnError&) = delete;

 private:
  int before_ = std::uncaught_exceptions();
};

/// Creates a communicator of the ranks of `bootstrap`, which is used only during the call. All ranks. Each
/// rank must have its own device.
using MakeDeviceCommunicator = std::unique_ptr<DeviceCommunicator> (*)(Communicator& bootstrap,
                                                                       Device& device, void* stream,
                                                                       std::string name);
void register_device_communicator(MakeDeviceCommunicator make);
/// The registered factory; null if there is none.
MakeDeviceCommunicator device_communicator();

}  // namespace lockstep
