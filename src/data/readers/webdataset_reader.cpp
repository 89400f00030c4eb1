// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads images and labels from tar archives in WebDataset's layout, each image where it lies.
#include <algorithm>
#include <charconv>

#include "data/data_files.h"
#include "data/image_options.h"
#include "data/reader_options.h"
#include "data/reader_table.h"
#include "data/readers/webdataset_index.h"
#include "data/tar_index.h"
#include "io/byte_source.h"

namespace lockstep {

namespace {

struct Options {
  std::vector<std::string> path, image;
  std::optional<std::string> labels, label_field, index;
  std::optional<std::vector<std::string>> classes;
};
constexpr std::array kOptions = with_store_options(with_image_options(std::array{
    option<&Options::path>(
        "path", kRequired, {},
        "the tar archive; a list, a pattern (train-*.tar) or a range (train-{000..127}.tar) of archives is "
        "read as one; relative to the config file's folder",
        Change::place),
    option<&Options::image>(
        "image", "[jpg, jpeg, png]", {},
        "extensions of the images: what follows the key and a dot in the name of a member"),
    option<&Options::labels>(
        "labels", "cls", in_words("an extension, or null"),
        "extension of the labels: a member with a class number, or a JSON object (see label_field); null: "
        "none"),
    option<&Options::label_field>(
        "label_field", "null", {},
        "the field of the JSON object that is the class number, or a name of classes"),
    option<&Options::classes>(
        "classes", "null", {},
        "names of the classes, in the order of their numbers; labels may be these names"),
    option<&Options::index>(
        "index", "null", {},
        "file in which the places of the samples are kept for the next job; relative to the config file's "
        "folder; null: the archives are looked through at each start",
        Change::free)}));

constexpr std::size_t kMostInRange = 1'000'000;

class WebdatasetStore final : public SampleStore {
 public:
  WebdatasetStore(ImageForm form, std::vector<WebdatasetShard> shards, std::int64_t first)
      : form_(std::move(form)), shards_(std::move(shards)), first_(first) {
    std::int64_t samples = 0;
    for (const WebdatasetShard& shard : shards_) {
      first_of_.push_back(samples);
      archives_.push_back(file_bytes(shard.path));
      samples += static_cast<std::int64_t>(shard.offset.size());
    }
  }

  void read(std::int64_t first, std::int64_t count, const SampleRoom& to) override {
    ImageWorks::Loan work(works_);
    auto* sample = static_cast<std::uint8_t*>(to.features);
    for (std::int64_t i = 0; i < count; ++i, sample += form_.sample_bytes()) {
      const Place place = place_of(first + i);
      read_bytes(place, work->file);
      work->read(
          form_, work->file, [&] { return where(first + i); }, sample);
      if (to.label_indices != nullptr) to.label_indices[i] = shards_[place.shard].label[place.sample];
    }
  }
  bool decodes_samples() const override { return true; }

  /// Of a sample; sets the form's.
  const Shape& set_shape(std::int64_t sample) {
    ImageWorks::Loan work(works_);
    read_bytes(place_of(sample), work->file);
    form_.shape = work->shape_of(form_, work->file, [&] { return where(sample); });
    return form_.shape;
  }

  /// "train-000.tar, member 00017.jpg".
  std::string where(std::int64_t sample) {
    const Place place = place_of(sample);
    const WebdatasetShard& shard = shards_[place.shard];
    std::string name;
    try {
      name = tar_name_before(*archives_[place.shard], shard.offset[place.sample]);
    } catch (const Error&) {  // the archive is gone: the message is about that
    }
    if (name.empty()) return fmt::format("{}, the member at byte {}", shard.path, shard.offset[place.sample]);
    return fmt::format("{}, member {}", shard.path, name);
  }

 private:
  struct Place {
    std::size_t shard, sample;
  };
  Place place_of(std::int64_t sample) const {
    const std::int64_t at = first_ + sample;
    const auto next = std::ranges::upper_bound(first_of_, at);
    return {static_cast<std::size_t>(next - first_of_.begin() - 1),
            static_cast<std::size_t>(at - *std::prev(next))};
  }

  void read_bytes(const Place& place, std::vector<std::byte>& bytes) {
    const WebdatasetShard& shard = shards_[place.shard];
    bytes.resize(static_cast<std::size_t>(shard.size[place.sample]));
    archives_[place.shard]->read(shard.offset[place.sample], bytes.data(), bytes.size());
  }

  ImageForm form_;
  const std::vector<WebdatasetShard> shards_;
  const std::int64_t first_;            ///< of all samples of the archives, the first one that is used
  std::vector<std::int64_t> first_of_;  ///< sample of each archive
  ImageWorks works_;
  std::vector<std::shared_ptr<ByteSource>> archives_;
};

/// "a-{08..11}.tar" -> a-08.tar, a-09.tar, a-10.tar, a-11.tar; all ranges of the text.
void expand_ranges(const Params& params, const std::string& text, std::vector<std::string>& to) {
  const auto open = text.find('{'), close = text.find('}', open);
  if (open == std::string::npos || close == std::string::npos) return to.push_back(text);
  const std::string inside = text.substr(open + 1, close - open - 1);
  const auto dots = inside.find("..");
  const auto number = [&](const std::string& digits) {
    std::size_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size())
      throw params.error("path", fmt::format("'{{{}}}' is no range of numbers", inside),
                         "Write train-{000..127}.tar.");
    return value;
  };
  if (dots == std::string::npos) number("");
  const std::string low = inside.substr(0, dots), high = inside.substr(dots + 2);
  const std::size_t first = number(low), last = number(high);
  if (first > last || last - first >= kMostInRange)
    throw params.error("path", fmt::format("'{{{}}}' is no range of up to a million numbers", inside),
                       "Write train-{000..127}.tar.");
  for (std::size_t n = first; n <= last; ++n)
    expand_ranges(params,
                  fmt::format("{}{:0{}}{}", text.substr(0, open), n, low.size(), text.substr(close + 1)), to);
}

WebdatasetForm form_of(const Params& params) {
  const auto options = params.as<Options>();
  WebdatasetForm form{.class_names = options.classes.value_or(std::vector<std::string>{})};
  const auto plain = [](std::string extension) {
    std::ranges::transform(extension, extension.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return extension.starts_with('.') ? extension.substr(1) : extension;
  };
  for (const std::string& extension : options.image) form.image_extensions.push_back(plain(extension));
  if (form.image_extensions.empty()) throw params.error("image", "names no extension", "Write image: jpg.");
  if (options.labels) form.label_extension = plain(*options.labels);
  form.label_field = options.label_field;
  if (form.label_field && form.label_extension.value_or("") != "json")
    throw params.error("label_field", "is a field of a JSON object", "Add labels: json.");
  if (!form.label_field && form.label_extension.value_or("") == "json")
    throw params.error("labels", "json needs to know the field", "Add label_field: its name.");
  return form;
}

DatasetParts dataset(const Params& params, const std::vector<std::string>& paths,
                     std::vector<WebdatasetShard> shards, ImageForm form, const std::optional<RowRange>& rows,
                     bool labels, const std::vector<std::string>& class_names) {
  DatasetParts parts;
  parts.source = name_of_files(paths);
  std::int64_t available = 0;
  for (const WebdatasetShard& shard : shards) available += static_cast<std::int64_t>(shard.offset.size());
  if (available == 0)
    throw Error(ErrorKind::data, "holds no samples", parts.source, "Check the path and the option image.");
  const RowRange range = checked_rows(rows, available, parts.source);
  // Blocks do not cross archives.
  std::int64_t before = 0;
  for (const WebdatasetShard& shard : shards) {
    const std::int64_t first = std::max(range.first, before);
    const std::int64_t end = before + static_cast<std::int64_t>(shard.offset.size());
    if (first < std::min(end, range.last))
      parts.files.push_back({shard.path, first - range.first, first - before});
    before = end;
  }
  parts.record_word = "sample";
  parts.size = range.last - range.first;
  parts.feature_dtype = form.dtype();
  parts.transform = transform_options(params);
  if (labels) {
    parts.label_kind = LabelKind::indices;
    parts.num_label_columns = 1;
    parts.class_names = class_names;
  }
  parts.feature_shape = form.shape;
  const auto store = std::make_shared<WebdatasetStore>(std::move(form), std::move(shards), range.first);
  if (parts.feature_shape.rank() == 0)
    look_at_first_good(params, parts.size,
                       [&](std::int64_t i) { parts.feature_shape = store->set_shape(i); });
  parts.name = [store](std::int64_t sample) { return store->where(sample); };
  parts.store = store;
  return parts;
}

std::vector<std::string> files(const Params& params, const std::string& base_directory) {
  std::vector<std::string> items;
  for (const std::string& item : params.as<Options>().path) expand_ranges(params, item, items);
  if (items.empty())
    throw params.error("path", "names no file", "Give a file, a list of files, or a pattern.");
  return data_files(items, base_directory);
}

DatasetParts make(const Params& params, const std::string& base_directory) {
  ImageForm form = image_form(params);
  const WebdatasetForm samples = form_of(params);
  const std::vector<std::string> paths = files(params, base_directory);
  const int threads = reader_threads(params);
  const std::optional<std::string> index = params.as<Options>().index;
  std::vector<WebdatasetShard> shards =
      index ? indexed_shards(paths, samples, threads, resolved_path(*index, base_directory))
            : scan_shards(paths, samples, threads);
  return dataset(params, paths, std::move(shards), std::move(form), rows_option(params),
                 samples.label_extension.has_value(), samples.class_names);
}

/// There are labels if the first sample has one.
DatasetParts make_input(const Params& params, const InputRequest& request) {
  ImageForm form = image_form(params);
  if (form.shape.rank() == 0) form.shape = request.feature_shape;
  check_feature_shape(form.shape, request.feature_shape, name_of_files(request.paths));
  WebdatasetForm samples = form_of(params);
  if (!request.labels || !first_sample_has_label(request.paths.front(), samples))
    samples.label_extension.reset();
  std::vector<WebdatasetShard> shards = scan_shards(request.paths, samples, reader_threads(params));
  return dataset(params, request.paths, std::move(shards), std::move(form), std::nullopt,
                 samples.label_extension.has_value(), request.class_names);
}

}  // namespace

extern const ReaderEntry kWebdatasetReader = {
    "webdataset", "images and labels in tar archives, in WebDataset's layout",
    kOptions,     make,
    make_input,   nullptr,
    false,        files};

}  // namespace lockstep
