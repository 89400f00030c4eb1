// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Event files: what TensorBoard reads. TFRecord framing with masked CRC-32C around protobuf messages
// (event.proto).
//
// A disk that is full or gone must not end a training: the first error is logged as a warning and remembered,
// and from then on nothing is written. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace lockstep {

class EventWriter {
 public:
  /// Creates `folder` where it is missing, and in it `events.out.tfevents.<10-digit time>.<host>.<pid>`.
  explicit EventWriter(const std::string& folder);
  /// Closes; an error is a warning.
  ~EventWriter();
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  /// One number, in float32 as TensorBoard keeps it. NaN and infinities are written as they are.
  void scalar(std::string_view tag, std::int64_t step, double value);
  /// Tells TensorBoard to forget what earlier files of the folder say of `step` and later: a resumed run
  /// calls it with the first step that it computes.
  void restart_from(std::int64_t step);
  /// Hands everything to the operating system.
  void flush();
  /// Flushes and closes; afterwards calls do nothing.
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
