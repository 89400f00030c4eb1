// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// One shard of a conversion to a folder of images, a file per sample: CLASS/0017.png, by the class of its
// label. All shards write below a folder within that of the records, which gets the name of the output when
// all of them are there. A shard has a list of its images, a line per image: bytes, hash, name. One rank; no
// communication.
#pragma once

#include <string>
#include <vector>

#include "core/range.h"
#include "io/png_file.h"
#include "tools/convert/conversion_plan.h"
#include "tools/convert/sample_source.h"
#include "tools/convert/shard_conversion.h"

namespace lockstep {

/// Throws Error(config) unless the samples are images, and the labels classes whose names are names of
/// folders.
void check_images(const ConversionPlan& plan, const SampleSource& source);

class ImageConversion final : public Conversion {
 public:
  ImageConversion(const ConversionPlan& plan, const SampleSource& source, std::int64_t shard, int threads,
                  bool verify);

  bool advance(std::int64_t bytes) override;
  void publish() override;
  std::int64_t written() const override { return written_; }
  std::int64_t verified() const override { return verify_ ? written_ : 0; }

 private:
  std::string write(const Samples& samples, std::int64_t in_block, std::int64_t sample) const;
  void compare(const std::string& path, const std::string& bytes, const Picture& picture,
               std::int64_t sample) const;

  const ConversionPlan& plan_;
  const SampleSource& source_;
  const std::int64_t shard_;
  const Range samples_;
  const int threads_;
  const bool verify_;
  std::vector<std::string> lines_;  ///< of the list, of each item
  std::int64_t next_ = 0, written_ = 0;
};

/// The images of a finished shard are as they were written.
bool images_are_there(const ConversionPlan& plan, std::int64_t shard);

/// What this rank has written is on the disk. Once: flushing each of many small files takes far longer.
void flush_images(const ConversionPlan& plan);

/// All shards are there, and all ranks have flushed them: the folder appears under its name. One rank.
void publish_images(const ConversionPlan& plan, const SampleSource& source);

}  // namespace lockstep
