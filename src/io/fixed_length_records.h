// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Files of records of a fixed length: a header, records, a footer.
#pragma once

#include <cstdint>

namespace lockstep {

class ByteSource;

struct FixedLengthRecords {
  std::int64_t record_bytes = 0;
  std::int64_t header_bytes = 0, footer_bytes = 0;
  /// The distance from the start of a record to that of the next one; 0: record_bytes.
  std::int64_t hop_bytes = 0;

  std::int64_t hop() const { return hop_bytes == 0 ? record_bytes : hop_bytes; }
  /// The first byte of a record.
  std::int64_t begin(std::int64_t record) const { return header_bytes + record * hop(); }
};

/// The number of records in a file, at least one. Throws Error(data) if bytes are left over.
std::int64_t count_records(ByteSource& file, const FixedLengthRecords& form);

}  // namespace lockstep
