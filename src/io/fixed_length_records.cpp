// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/fixed_length_records.h"

#include "core/error.h"
#include "io/byte_source.h"

namespace lockstep {

std::int64_t count_records(ByteSource& file, const FixedLengthRecords& form) {
  const std::int64_t bytes = exact_bytes(file), between = bytes - form.header_bytes - form.footer_bytes;
  if (between < form.record_bytes)
    throw Error(ErrorKind::data,
                fmt::format("has {} bytes, but header, footer and one record have {}", bytes,
                            form.header_bytes + form.footer_bytes + form.record_bytes),
                file.where(), "Check the path and the form of the records.");
  const std::int64_t count = (between - form.record_bytes) / form.hop() + 1;
  const std::int64_t left = between - ((count - 1) * form.hop() + form.record_bytes);
  // The distance to a next record may be there after the last one.
  if (left != 0 && left != form.hop() - form.record_bytes)
    throw Error(ErrorKind::data,
                fmt::format("{} bytes are left after {} records of {} bytes", left, count, form.record_bytes),
                fmt::format("{}, record {}", file.where(), count),
                "The file may be truncated; or check the form of the records.");
  return count;
}

}  // namespace lockstep
