// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the reader webdataset: where the samples of tar archives ("shards") are, and their labels. 20
// bytes per sample. Made by one pass over the headers of all archives, and kept in a file for the next time.
//
// A sample is a group of consecutive members with the same key: the name up to the first dot after the last
// slash. What follows the dot is the extension, in any case of letters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

/// What a sample consists of.
struct WebdatasetForm {
  std::vector<std::string> image_extensions;  ///< in lower case
  std::optional<std::string> label_extension;
  std::optional<std::string> label_field;  ///< of a JSON object; empty: the member is the label
  std::vector<std::string> class_names;    ///< labels may be one of them; empty: labels are numbers
};

/// The samples of one archive.
struct WebdatasetShard {
  std::string path;
  std::int64_t bytes = 0,
               changed = 0;          ///< of the archive: size, and time of change in nanoseconds since 1970
  std::vector<std::int64_t> offset;  ///< of each image
  std::vector<std::int64_t> size;
  std::vector<std::int32_t> label;  ///< empty without labels
};

/// Sets bytes and changed of the archive that shard.path names. Throws Error(data).
void look_at(WebdatasetShard& shard);

/// Reads the headers of all archives, on `threads` threads. Throws Error(data) at "<archive>, byte N" or
/// "<archive>, member NAME".
std::vector<WebdatasetShard> scan_shards(const std::vector<std::string>& paths, const WebdatasetForm& form,
                                         int threads);

/// Whether the first sample of an archive has a label.
bool first_sample_has_label(const std::string& path, const WebdatasetForm& form);

/// The result of scan_shards(), from the file `index` for the archives that it knows with the same size, time
/// of change and form; then writes the file anew if others were scanned. Throws Error(data) if there is
/// another file of this name, or it cannot be written.
std::vector<WebdatasetShard> indexed_shards(const std::vector<std::string>& paths, const WebdatasetForm& form,
                                            int threads, const std::string& index);

}  // namespace lockstep
