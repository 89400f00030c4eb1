// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/convert/shard_conversion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/in_parallel.h"
#include "core/ordered_work.h"
#include "core/range.h"
#include "data/data_options.h"

namespace lockstep {

namespace {

SampleFileForm form_of(const ConversionPlan& plan, const SampleSource& source, std::int64_t samples) {
  const Dataset& data = source.data();
  return {.samples = samples,
          .shape = source.shape(),
          .type = source.type(),
          .label_columns = data.num_label_columns(),
          .labels_are_indices = data.label_kind() == LabelKind::indices,
          .chunk_samples = plan.chunk_samples,
          .class_names = data.class_names(),
          .source_fingerprint = data.fingerprint()};
}

constexpr const char* kAdvice = "Do not use the files. The disk may be damaged: convert again.";

}  // namespace

/// Errors name files, not what they are called until they are complete.
template <typename Work>
void ShardConversion::with_names(Work work) const {
  try {
    work();
  } catch (const Error& error) {
    std::string where = error.where();
    for (std::size_t i = 0; i < files_.size(); ++i)
      if (const std::size_t at = where.find(temporaries_[i]); at != std::string::npos)
        where.replace(at, temporaries_[i].size(), files_[i]);
    throw Error(error.kind(), error.what_happened(), where, error.advice());
  }
}

ShardConversion::ShardConversion(const ConversionPlan& plan, const SampleSource& source, std::int64_t shard,
                                 int threads, bool verify)
    : plan_(plan),
      source_(source),
      samples_(plan.samples_of(shard)),
      threads_(threads),
      verify_(verify),
      files_(plan.files(shard)) {
  for (const std::string& file : files_) {
    temporaries_.push_back(temporary_name(file));
    remove_.push_back(std::make_unique<RemoveOnFailure>(temporaries_.back()));
  }
  with_names([&] {
    writer_ =
        make_sample_writer(plan.format, temporaries_, form_of(plan, source, samples_.size()), plan.file);
  });
  hashes_.resize(static_cast<std::size_t>(num_items()));
}

std::int64_t ShardConversion::num_items() const {
  return (samples_.size() + plan_.item_samples - 1) / plan_.item_samples;
}

Range ShardConversion::samples_of(std::int64_t item) const {
  return {item * plan_.item_samples, std::min((item + 1) * plan_.item_samples, samples_.size())};
}

bool ShardConversion::advance(std::int64_t bytes) {
  bool done = false;
  with_names([&] { done = work(bytes); });
  return done;
}

bool ShardConversion::work(std::int64_t bytes) {
  const std::int64_t count =
      std::clamp<std::int64_t>(bytes / (plan_.item_samples * source_.sample_bytes()), 1, num_items() - next_);
  if (writer_ != nullptr) {
    write(next_, count);
    next_ += count;
    if (next_ < num_items()) return false;
    writer_->finish();
    writer_.reset();
    next_ = 0;
    return !verify_;
  }
  if (result_ == nullptr) open_result();
  compare(next_, count);
  next_ += count;
  if (next_ < num_items()) return false;
  result_.reset();
  return true;
}

void ShardConversion::write(std::int64_t first, std::int64_t count) {
  ordered_work<Item>(
      threads_, count,
      [&](std::int64_t i) {
        const Range range = samples_of(first + i);
        const Samples samples = source_.read(samples_.first + range.first, range.size());
        return Item{writer_->encode(samples.block()), verify_ ? hash_of(samples) : 0};
      },
      [&](std::int64_t i, const Item& item) {
        writer_->write(item.block);
        hashes_[static_cast<std::size_t>(first + i)] = item.hash;
        written_ += item.block.count;
      });
}

void ShardConversion::open_result() {
  const DataOptions options = data_options(section_of(plan_, source_, temporaries_));
  result_ = std::make_unique<SampleSource>(open_training_set(options, "", {.read_once = true}), false,
                                           plan_.format);
  const Dataset& is = result_->data();
  const Dataset& was = source_.data();
  const auto differs = [&](std::string what, std::string advice) {
    throw Error(ErrorKind::data, "read back, " + std::move(what), files_[0], std::move(advice));
  };
  if (is.label_kind() != was.label_kind())
    differs("its labels are of another kind: class indices, or targets",
            "A format that has no types, such as csv, cannot hold targets that are all whole numbers: choose "
            "--to hdf5.");
  if (result_->size() != samples_.size() || !(result_->shape() == source_.shape()) ||
      result_->type() != source_.type() || is.num_label_columns() != was.num_label_columns())
    differs(fmt::format("it has {} samples of {} {}, not {} of {} {}", result_->size(),
                        result_->shape().to_string(), name_of(result_->type()), samples_.size(),
                        source_.shape().to_string(), name_of(source_.type())),
            kAdvice);
}

void ShardConversion::compare(std::int64_t first, std::int64_t count) {
  in_parallel(threads_, count, [&](std::int64_t i) {
    const Range range = samples_of(first + i);
    if (hash_of(result_->read(range.first, range.size())) != hashes_[static_cast<std::size_t>(first + i)])
      report_difference(range);
  });
  verified_ += samples_of(first + count - 1).last - samples_of(first).first;
}

/// Names the first sample that differs.
void ShardConversion::report_difference(const Range& samples) const {
  for (std::int64_t i = samples.first; i < samples.last; ++i)
    if (hash_of(result_->read(i, 1)) != hash_of(source_.read(samples_.first + i, 1)))
      throw Error(ErrorKind::data,
                  fmt::format("read back, sample {} differs from {}", i, source_.where(samples_.first + i)),
                  files_[0], kAdvice);
  throw Error(ErrorKind::data,
              fmt::format("the source has changed since samples {} to {} were converted",
                          samples_.first + samples.first, samples_.first + samples.last - 1),
              source_.where(samples_.first + samples.first), "Convert again.");
}

void ShardConversion::publish() {
  for (std::size_t i = files_.size(); i-- > 0;) {
    publish_file(temporaries_[i], files_[i], ErrorKind::output);
    remove_[i]->keep();
  }
}

}  // namespace lockstep
