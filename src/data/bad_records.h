// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Bad records: samples that cannot be decoded, or whose values are not finite. With data.bad_records: skip
// they are found before training, and left out as if the files did not have them (good_samples.h). So the
// list decides what a set is: all ranks must have the same one.
//
// Why before training: a reader that skipped a record where it meets it would change the order of all that
// follow, so batches would depend on which rank reads what, and a resumed run would have other batches. A
// pass shared by ranks and threads reads every record once, in parts that depend on the set only. All that
// follows (choices, blocks, step plan, fingerprint, stream) counts good samples and knows of no bad ones. The
// run keeps the list, so its samples do not change even if a record can be read again. A file that cannot be
// opened or breaks off is a FileError and ends the run: a file system that is down must not look like a set
// of bad records. A label that the loss cannot use stays an error, too: the cause is nearly always the number
// of classes.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/params.h"
#include "core/function_ref.h"
#include "data/sample_store.h"

namespace lockstep {

class Dataset;
class OpenedSamples;

struct BadRecord {
  std::int64_t sample = 0;  ///< among all, the bad ones too
  std::string where;        ///< "x.tfrecord, record 17"
  std::string reason;
  friend bool operator==(const BadRecord&, const BadRecord&) = default;
};

/// The options bad_records and max_bad_records of a reader.
struct BadRecordOptions {
  bool skip = false;
  double limit = 0;  ///< below 1 a share of the samples

  /// The most bad records that `num_samples` samples may have.
  std::int64_t most(std::int64_t num_samples) const;
};

/// Readers without these options skip nothing. Throws Error(config) with a position.
BadRecordOptions bad_record_options(const Params& params, std::span<const ParamSpec> table);

/// Calls look(i), for readers whose first record says what all are like, for record 0 of `count`, and with
/// bad_records: skip for the next ones until one is not bad. Throws what the first one throws.
void look_at_first_good(const Params& params, std::int64_t count, FunctionRef<void(std::int64_t i)> look);

/// Throws Error(data) if `count` is more than `most`. `found`: some of them, at least one.
void check_bad_records(std::span<const BadRecord> found, std::int64_t count, std::int64_t most,
                       std::int64_t num_samples);

/// Looks for the bad records of samples with a store. They are cut into parts that depend on the samples
/// only.
class BadRecordScan {
 public:
  /// `most`: may be found in this process; find() throws Error(data) for more. `data` must live as long as
  /// this.
  BadRecordScan(const OpenedSamples& data, std::int64_t most);

  int num_parts() const { return num_parts_; }
  /// How many threads may find parts, in rising order.
  int most_threads() const;
  /// Ascending. Any thread. Throws what the store throws about whole files (FileError).
  std::vector<BadRecord> find(int part);

 private:
  void look_at(std::int64_t first, std::int64_t count, const SampleRoom& room, std::vector<BadRecord>& found);

  const OpenedSamples& data_;
  const std::int64_t most_;
  int num_parts_;
  std::atomic<std::int64_t> count_{0};
};

/// All of them, found by this process. Ascending.
std::vector<BadRecord> bad_records_of(const OpenedSamples& data, std::int64_t most, int threads);

/// The bad records of one set of a run.
struct BadRecordList {
  std::string set, input;  ///< "train" or "eval"; of data.inputs or data.targets, or empty
  std::vector<BadRecord> records;
};
/// CSV: set,input,sample,record,reason, a line per record.
std::string bad_records_text(std::span<const BadRecordList> lists);
/// Reads what bad_records_text() wrote. Throws Error(data) at `where`.
std::vector<BadRecordList> bad_records_from_text(std::string_view text, const std::string& where);

/// "3 of 1000 records are bad and left out: x.csv, line 17 (...); ...", of each input; none without any.
std::vector<std::string> bad_records_notes(const Dataset& data);

}  // namespace lockstep
