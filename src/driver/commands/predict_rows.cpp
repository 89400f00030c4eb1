// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The rows of a file of predictions: those of samples in their places, and NaN for bad samples.
#include <limits>

#include "comm/agree.h"
#include "comm/shared_error.h"
#include "core/range.h"
#include "driver/commands/predict_work.h"

namespace lockstep {

namespace {

/// Rows of samples without predictions: NaN, and labels that are none.
class MissingRows {
 public:
  explicit MissingRows(const std::vector<PredictedHead>& heads) {
    for (const PredictedHead& head : heads) {
      values_.emplace_back(static_cast<std::size_t>(std::max(head.values(), head.labels)),
                           std::numeric_limits<float>::quiet_NaN());
      indices_.emplace_back(static_cast<std::size_t>(head.labels), -1);
    }
    for (std::size_t h = 0; h < heads.size(); ++h) {
      const std::span<const float> values = values_[h];
      const auto count = static_cast<std::size_t>(heads[h].values());
      rows_.push_back({.outputs = values.first(count),
                       .spread = values.first(count),
                       .label_indices = indices_[h],
                       .label_values = values.first(static_cast<std::size_t>(heads[h].labels))});
    }
  }
  /// Of one sample.
  const std::vector<PredictedRows>& rows() const { return rows_; }

 private:
  std::vector<std::vector<float>> values_;
  std::vector<std::vector<std::int32_t>> indices_;
  std::vector<PredictedRows> rows_;
};

/// `rows` without their first samples.
std::vector<PredictedRows> rows_from(const PredictWork& work, const std::vector<PredictedRows>& rows,
                                     std::int64_t first, std::int64_t count) {
  std::vector<PredictedRows> some;
  for (std::size_t h = 0; h < rows.size(); ++h) {
    const auto part = [&](auto values, std::int64_t each) {
      return values.empty() ? values
                            : values.subspan(static_cast<std::size_t>(first * each),
                                             static_cast<std::size_t>(count * each));
    };
    const PredictedHead& head = work.heads[h];
    some.push_back({.outputs = part(rows[h].outputs, head.values()),
                    .spread = part(rows[h].spread, head.values()),
                    .label_indices = part(rows[h].label_indices, head.labels),
                    .label_values = part(rows[h].label_values, head.labels)});
  }
  return some;
}

/// Writes bad samples up to a place, on rank 0; those that the file has room for come in their order.
void write_missing(PredictWork& work, std::int64_t until) {
  const MissingRows missing(work.heads);
  for (; work.written < until; ++work.written) work.writer->add(1, missing.rows());
}

/// Writes rows of consecutive predictions, which bad samples may interrupt.
void write_rows(PredictWork& work, std::int64_t first, std::int64_t count,
                const std::vector<PredictedRows>& rows) {
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t place = work.place_of(first + done);
    std::int64_t here = 1;
    while (done + here < count && work.place_of(first + done + here) == place + here) ++here;
    const std::vector<PredictedRows> part = rows_from(work, rows, done, here);
    if (work.part) {
      work.part->add(place, here, part);
    } else {
      write_missing(work, place);
      work.writer->add(here, part);
      work.written += here;
    }
    done += here;
  }
}

/// The rows of all outputs for one batch. Not collective.
void write_batch(PredictWork& work, std::vector<std::vector<float>>& means,
                 std::vector<std::vector<float>>& spreads) {
  const PredictionStream& first = *work.streams.front();
  const bool own_rows = work.part != nullptr;
  const Range samples = own_rows ? first.own() : Range{0, first.count()};
  if (samples.size() == 0) return;
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = samples.first; i < samples.last; ++i)
    numbers.push_back(first.sample_at(first.first() + i));
  work.labels->gather(numbers);
  std::vector<PredictedRows> rows(work.heads.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const int head = static_cast<int>(i);
    std::vector<std::span<const float>> of_members;
    for (const auto& stream : work.streams)
      of_members.push_back(own_rows ? stream->own_rows(head) : stream->rows(head));
    rows[i].outputs = of_members.front();
    if (of_members.size() > 1) {
      const PredictionKind kind = (*work.first().model().heads)[head].loss->predictions();
      average_rows(kind, of_members, means[i]);
      rows[i].outputs = means[i];
      if (work.is_ensemble()) spread_of_rows(kind, of_members, spreads[i]);
      rows[i].spread = spreads[i];
    }
    if (work.heads[i].labels > 0) work.labels->set(head, rows[i]);
  }
  write_rows(work, first.first() + samples.first, samples.size(), rows);
}

/// Rows of bad samples that no prediction follows; of a file that all ranks write, those of all.
void write_bad(PredictWork& work) {
  if (!work.part) {
    if (work.writer) write_missing(work, work.num_rows());
    return;
  }
  if (!work.first().is_chief()) return;
  const MissingRows missing(work.heads);
  for (const BadRecord& record : work.bad) work.part->add(record.sample, 1, missing.rows());
}

}  // namespace

void predict_all(PredictWork& work) {
  std::vector<std::vector<float>> means(work.heads.size()), spreads(work.heads.size());
  for (;;) {
    bool more = false;
    for (const auto& stream : work.streams) more = stream->next();
    if (!more) return;
    // A full disk ends the command on all ranks, after the batch that no longer fits.
    shared([&] {
      agree(
          work.world(),
          [&] {
            if (work.part || work.writer) write_batch(work, means, spreads);
          },
          "writing the predictions");
    });
  }
}

void close_prediction_files(PredictWork& work) {
  shared([&] {
    agree(
        work.world(),
        [&] {
          write_bad(work);
          if (work.part) work.part->finish();
        },
        "writing the predictions");
    agree(
        work.world(),
        [&] {
          if (!work.writer) return;
          work.writer->finish();
          work.file->publish();
        },
        "writing the predictions");
  });
}

std::function<std::int64_t(std::int64_t)> numbers_of(const PredictWork& work) {
  if (!work.takes_set()) return {};
  return [&work](std::int64_t place) { return work.streams.front()->sample_at(place); };
}

}  // namespace lockstep
