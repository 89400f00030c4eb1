// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes event files for TensorBoard: TFRecord framing with masked CRC-32C around protobuf messages
// (event.proto).
//
// A full or lost disk must not end a training run. The first error is logged as a warning and remembered, and
// nothing more is written. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/summary_value.h"

namespace lockstep {

class EventWriter {
 public:
  /// Creates `folder` if it does not exist, and in it `events.out.tfevents.<10-digit time>.<host>.<pid>`.
  explicit EventWriter(const std::string& folder);
  /// Closes the file; an error is a warning.
  ~EventWriter();
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  /// Writes one number, in float32 as in TensorBoard. NaN and infinities are written unchanged.
  void scalar(std::string_view tag, std::int64_t step, double value);
  /// Writes values of one step, in one record. A file holds the metadata of a tag once, with its first value.
  void add(std::int64_t step, std::vector<SummaryValue> values);
  /// Makes TensorBoard discard the values of earlier files from `step` on. A resumed run calls it with the
  /// first step that it computes.
  void restart_from(std::int64_t step);
  /// Hands all data to the operating system, so that it survives the end of this process. A thread that
  /// writes values at the same time does not wait for the disk.
  void flush();
  /// Flushes, and makes the data durable, so that they survive the end of this machine.
  void sync();
  /// Flushes and closes the file. Later calls have no effect.
  void close();

  /// The file's path; empty if it could not be created.
  std::string path() const;
  /// The first error, or empty.
  std::string error() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
