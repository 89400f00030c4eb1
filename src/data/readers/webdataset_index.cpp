// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The index file, in the byte order of the machine (the start-up check wants the same everywhere):
//
//   16 bytes   "lockstep index 1"                          do not change
//    8         XXH3 of all that follows
//    8         number of archives, and for each of them
//              XXH3 of the form (extensions, field, class names); length and bytes of the path; size; time of
//              change; number of samples; number of labels; offsets, sizes (8 bytes each), labels (4)
//
// Numbers have 8 bytes. Ranks that make the index at the same time write the same bytes, each atomically.
#include "data/readers/webdataset_index.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>

#include "core/error.h"
#include "core/hash.h"
#include "io/atomic_file.h"

namespace lockstep {

namespace {

constexpr std::string_view kMagic = "lockstep index 1";

std::uint64_t hash_of(const WebdatasetForm& form) {
  Digest digest;
  for (const std::string& extension : form.image_extensions) digest.add(std::string_view(extension));
  digest.add(form.label_extension.value_or("-")).add(form.label_field.value_or("-"));
  for (const std::string& name : form.class_names) digest.add(std::string_view(name));
  return hash64(digest.hex());
}

class Writer {
 public:
  void number(std::int64_t value) { text_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void bytes(std::string_view value) {
    number(static_cast<std::int64_t>(value.size()));
    text_ += value;
  }
  template <typename T>
  void all(const std::vector<T>& values) {
    text_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// Reads what Writer wrote. The hash says that all of it is there.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  std::int64_t number() {
    std::int64_t value = 0;
    take(&value, sizeof value);
    return value;
  }
  std::string bytes() {
    std::string value(static_cast<std::size_t>(number()), '\0');
    take(value.data(), value.size());
    return value;
  }
  template <typename T>
  std::vector<T> all(std::int64_t count) {
    std::vector<T> values(static_cast<std::size_t>(count));
    take(values.data(), values.size() * sizeof(T));
    return values;
  }

 private:
  void take(void* to, std::size_t count) {
    LOCKSTEP_CHECK(count <= text_.size(), "an index that its hash does not describe");
    if (count > 0) std::memcpy(to, text_.data(), count);
    text_.remove_prefix(count);
  }
  std::string_view text_;
};

/// The archives that the file knows, by the hash of the form and the path; none if it is damaged.
using Known = std::map<std::pair<std::uint64_t, std::string>, WebdatasetShard>;

Known read_index(const std::string& path) {
  std::error_code code;
  if (std::filesystem::status(path, code).type() == std::filesystem::file_type::not_found) return {};
  const std::string whole = read_whole_file(path, ErrorKind::data);
  if (!std::string_view(whole).starts_with(kMagic))
    throw Error(ErrorKind::data, "is a file, but not an index of Lockstep's", path,
                "Give the option index another name; the file is left as it is.");
  std::string_view rest = std::string_view(whole).substr(kMagic.size());
  std::uint64_t hash = 0;
  if (rest.size() < sizeof hash) return {};
  std::memcpy(&hash, rest.data(), sizeof hash);
  rest.remove_prefix(sizeof hash);
  if (hash64(rest) != hash) return {};
  Reader reader(rest);
  Known known;
  for (std::int64_t left = reader.number(); left > 0; --left) {
    WebdatasetShard shard;
    const auto form = static_cast<std::uint64_t>(reader.number());
    shard.path = reader.bytes();
    shard.bytes = reader.number();
    shard.changed = reader.number();
    const std::int64_t samples = reader.number(), labels = reader.number();
    shard.offset = reader.all<std::int64_t>(samples);
    shard.size = reader.all<std::int64_t>(samples);
    shard.label = reader.all<std::int32_t>(labels);
    known.insert_or_assign({form, shard.path}, std::move(shard));
  }
  return known;
}

void write_index(const std::string& path, const Known& shards) {
  Writer writer;
  writer.number(static_cast<std::int64_t>(shards.size()));
  for (const auto& [key, shard] : shards) {
    writer.number(static_cast<std::int64_t>(key.first));
    writer.bytes(shard.path);
    writer.number(shard.bytes);
    writer.number(shard.changed);
    writer.number(static_cast<std::int64_t>(shard.offset.size()));
    writer.number(static_cast<std::int64_t>(shard.label.size()));
    writer.all(shard.offset);
    writer.all(shard.size);
    writer.all(shard.label);
  }
  const std::uint64_t hash = hash64(writer.text());
  std::string whole(kMagic);
  whole.append(reinterpret_cast<const char*>(&hash), sizeof hash);
  write_file_atomically(path, whole + writer.text(), ErrorKind::data);
}

}  // namespace

std::vector<WebdatasetShard> indexed_shards(const std::vector<std::string>& paths, const WebdatasetForm& form,
                                            int threads, const std::string& index) {
  Known known = read_index(index);
  const std::uint64_t hash = hash_of(form);
  const auto is_up_to_date = [&](const std::string& path) {
    const auto found = known.find({hash, path});
    if (found == known.end()) return false;
    WebdatasetShard now{.path = path};
    look_at(now);
    return now.bytes == found->second.bytes && now.changed == found->second.changed;
  };
  std::vector<std::string> unknown;
  std::ranges::copy_if(paths, std::back_inserter(unknown),
                       [&](const std::string& path) { return !is_up_to_date(path); });
  if (!unknown.empty()) {
    for (WebdatasetShard& shard : scan_shards(unknown, form, threads))
      known.insert_or_assign({hash, shard.path}, std::move(shard));
    write_index(index, known);  // with the archives of other sets
  }
  std::vector<WebdatasetShard> shards;
  for (const std::string& path : paths) shards.push_back(std::move(known.at({hash, path})));
  return shards;
}

}  // namespace lockstep
