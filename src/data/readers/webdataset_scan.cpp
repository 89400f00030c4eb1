// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "core/error.h"
#include "core/in_parallel.h"
#include "core/name_list.h"
#include "data/readers/webdataset_index.h"
#include "data/tar_index.h"
#include "io/json_fields.h"

namespace lockstep {

namespace {

/// Labels are short; a JSON member may describe its sample.
constexpr std::int64_t kNanoseconds = 1'000'000'000;
constexpr std::int64_t kMostLabelBytes = std::int64_t{1} << 24;

struct KeyAndExtension {
  std::string key, extension;
};

/// Empty for a name without an extension, and for hidden files.
std::optional<KeyAndExtension> split_name(const std::string& name) {
  const auto slash = name.rfind('/');
  const std::size_t start = slash == std::string::npos ? 0 : slash + 1;
  const auto dot = name.find('.', start);
  if (dot == std::string::npos || dot == start || dot + 1 == name.size()) return std::nullopt;
  KeyAndExtension parts{name.substr(0, dot), name.substr(dot + 1)};
  std::ranges::transform(parts.extension, parts.extension.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return parts;
}

std::string where_of(ByteSource& archive, const std::string& member) {
  return fmt::format("{}, member {}", archive.where(), member);
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

/// A label in text: one of the classes, or a whole number.
std::int32_t label_of_text(std::string_view text, const WebdatasetForm& form, const std::string& where) {
  const auto named = std::ranges::find(form.class_names, text);
  if (named != form.class_names.end()) return static_cast<std::int32_t>(named - form.class_names.begin());
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && !text.empty()) return value;
  throw Error(ErrorKind::data,
              form.class_names.empty()
                  ? fmt::format("its label '{}' is not a whole number of 32 bits", text.substr(0, 40))
                  : fmt::format("its label '{}' is none of the {} classes, and no whole number",
                                text.substr(0, 40), form.class_names.size()),
              where, "Labels are class numbers from 0 on; the option classes gives them names.");
}

std::int32_t label_of_json(std::string_view text, const WebdatasetForm& form, const std::string& where) {
  JsonField field{.name = *form.label_field};
  try {
    read_json_fields(text, {&field, 1});
  } catch (const Error& error) {
    throw Error(error.kind(), error.what_happened(),
                error.where().empty() ? where : fmt::format("{}, {}", where, error.where()), error.advice());
  }
  if (!field.found)
    throw Error(ErrorKind::data, fmt::format("has no field '{}'", *form.label_field), where,
                "Correct the option label_field.");
  if (field.is_text) return label_of_text(field.text, form, where);
  if (field.is_whole && field.extents.empty())
    return label_of_text(fmt::format("{}", field.numbers[0]), form, where);
  throw Error(ErrorKind::data,
              fmt::format("its field '{}' is neither a whole number nor text", *form.label_field), where,
              "Labels are class numbers from 0 on; the option classes gives them names.");
}

/// Puts the members of one archive together.
class Shard {
 public:
  Shard(ByteSource& archive, const WebdatasetForm& form) : archive_(archive), form_(form) {
    shard_.path = archive.where();
    look_at(shard_);
  }

  void add(const TarMember& member) {
    const std::optional<KeyAndExtension> parts = split_name(member.name);
    if (!parts) return;
    if (parts->key != key_) {
      end_sample();
      key_ = parts->key;
    }
    const bool is_image =
        std::ranges::find(form_.image_extensions, parts->extension) != form_.image_extensions.end();
    const bool is_label = form_.label_extension && parts->extension == *form_.label_extension;
    extensions_.push_back("." + parts->extension);
    if (is_image) {
      if (image_)
        throw Error(ErrorKind::data, fmt::format("the sample '{}' has a second image", key_),
                    where_of(archive_, member.name),
                    "Give the option image: the extension of the wanted one.");
      image_ = member;
    }
    if (is_label) {
      if (label_)
        throw Error(ErrorKind::data, fmt::format("the sample '{}' has a second label", key_),
                    where_of(archive_, member.name), "A key may be used once in a row.");
      label_ = read_label(member);
    }
  }

  WebdatasetShard finished() {
    end_sample();
    return std::move(shard_);
  }

 private:
  std::int32_t read_label(const TarMember& member) {
    const std::string where = where_of(archive_, member.name);
    if (member.size > kMostLabelBytes)
      throw Error(ErrorKind::data, fmt::format("has {} bytes, too many for a label", member.size), where,
                  "Correct the option labels.");
    text_.resize(static_cast<std::size_t>(member.size));
    archive_.read(member.offset, text_.data(), text_.size());
    const std::string_view text = trimmed({reinterpret_cast<const char*>(text_.data()), text_.size()});
    return form_.label_field ? label_of_json(text, form_, where) : label_of_text(text, form_, where);
  }

  void end_sample() {
    if (!key_.empty()) {
      if (!image_)
        fail_incomplete("image", form_.image_extensions,
                        "Give the option image: the extension of the images.");
      if (form_.label_extension && !label_)
        fail_incomplete("label", {*form_.label_extension},
                        "Give the option labels: their extension, or null.");
      shard_.offset.push_back(image_->offset);
      shard_.size.push_back(image_->size);
      if (label_) shard_.label.push_back(*label_);
    }
    image_.reset();
    label_.reset();
    extensions_.clear();
    key_.clear();
  }

  /// `wanted`: the extensions, one of which is missing.
  [[noreturn]] void fail_incomplete(const char* what, const std::vector<std::string>& wanted,
                                    const char* advice) const {
    const std::string where = fmt::format("{}, sample {}", archive_.where(), key_);
    std::vector<std::string> all;
    read_tar(archive_, [&](const TarMember& member) {
      const std::optional<KeyAndExtension> parts = split_name(member.name);
      if (parts && parts->key == key_) all.push_back("." + parts->extension);
    });
    if (all.size() > extensions_.size())
      throw Error(
          ErrorKind::data,
          fmt::format("its members do not follow each other in the archive: they end with {}, and other "
                      "samples stand between them",
                      name_list(all)),
          where, "Write the members sorted by their names: tar --sort=name -cf NEW.tar -C FOLDER .");
    for (const std::string& extension : extensions_)
      for (const std::string& one : wanted)
        if (extension.ends_with("." + one))
          throw Error(
              ErrorKind::data,
              fmt::format("has no {}: its members end with {}. In WebDataset, the first dot of a name ends "
                          "the key: '{}' is the extension of '{}{}'",
                          what, name_list(extensions_), extension.substr(1), key_, extension),
              where,
              fmt::format("Rename the members, with other characters than dots in the key, or give the "
                          "option {}: \"{}\".",
                          what == std::string_view("image") ? "image" : "labels", extension.substr(1)));
    throw Error(ErrorKind::data,
                fmt::format("has no {}: its members end with {}", what, name_list(extensions_)), where,
                advice);
  }

  ByteSource& archive_;
  const WebdatasetForm& form_;
  WebdatasetShard shard_;
  std::string key_;                      ///< of the current sample
  std::vector<std::string> extensions_;  ///< of it, for messages
  std::optional<TarMember> image_;
  std::optional<std::int32_t> label_;
  std::vector<std::byte> text_;
};

}  // namespace

void look_at(WebdatasetShard& shard) {
  struct stat status {};
  if (::stat(shard.path.c_str(), &status) != 0)
    throw Error(ErrorKind::data, fmt::format("cannot look at the file: {}", std::strerror(errno)), shard.path,
                "Check that the file exists, and that the path is spelled right.");
  shard.bytes = status.st_size;
  shard.changed = status.st_mtim.tv_sec * kNanoseconds + status.st_mtim.tv_nsec;
}

std::vector<WebdatasetShard> scan_shards(const std::vector<std::string>& paths, const WebdatasetForm& form,
                                         int threads) {
  std::vector<WebdatasetShard> shards(paths.size());
  in_parallel(threads, static_cast<std::int64_t>(paths.size()), [&](std::int64_t i) {
    const std::shared_ptr<ByteSource> archive = file_bytes(paths[static_cast<std::size_t>(i)]);
    Shard shard(*archive, form);
    read_tar(*archive, [&](const TarMember& member) { shard.add(member); });
    shards[static_cast<std::size_t>(i)] = shard.finished();
  });
  return shards;
}

bool first_sample_has_label(const std::string& path, const WebdatasetForm& form) {
  if (!form.label_extension) return false;
  std::string key;
  bool found = false, is_first = true;
  read_tar(*file_bytes(path), [&](const TarMember& member) {
    const std::optional<KeyAndExtension> parts = split_name(member.name);
    if (!parts) return;
    if (key.empty()) key = parts->key;
    is_first = is_first && parts->key == key;
    found = found || (is_first && parts->extension == *form.label_extension);
  });
  return found;
}

}  // namespace lockstep
