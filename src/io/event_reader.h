// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads event files record by record and verifies every CRC.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

/// One value of a summary. `kind` is "scalar", "histogram", "image", "audio", "tensor" or "unknown"; only
/// scalars have a `number`.
struct EventValue {
  std::string tag;
  std::string kind;
  double number = 0;
};

struct EventRecord {
  double wall_time = 0;  ///< seconds since 1970
  std::int64_t step = 0;
  std::string file_version;  ///< first record only: "brain.Event:2"
  bool restart = false;      ///< earlier records of `step` and later are invalid
  std::vector<EventValue> values;
};

class EventReader {
 public:
  /// Throws Error(data) if the file cannot be opened.
  explicit EventReader(const std::string& path);
  ~EventReader();
  EventReader(const EventReader&) = delete;
  EventReader& operator=(const EventReader&) = delete;

  /// Returns the next record, or nullopt at the end. A record that the end of the file truncates (after a
  /// killed run) counts as the end, and note() reports it. A damaged record throws Error(data) with its
  /// offset.
  std::optional<EventRecord> next();
  /// The number of bytes of the records that next() has returned.
  std::uint64_t offset() const;
  /// A remark about an irregular end; otherwise empty.
  const std::string& note() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
