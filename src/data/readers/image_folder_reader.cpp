// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads folders of JPEG and PNG files, one folder per class, or any such files. Only lists them at the start;
// a file is opened when its sample is read.
#include <filesystem>
#include <set>

#include "data/data_files.h"
#include "data/image_options.h"
#include "data/reader_options.h"
#include "data/reader_table.h"
#include "data/readers/image_files.h"

namespace lockstep {

namespace {

enum class Labels { folder, none };
struct Options {
  std::vector<std::string> path;
  Labels labels{};
  std::optional<std::vector<std::string>> classes;
};
/// Null, or some names, each once.
std::optional<std::vector<std::string>> class_list(const Params& params, const ParamSpec& option) {
  if (!params.has(option.name)) return std::nullopt;
  const std::vector<std::string>& names = params.strings(option.name);
  if (names.empty()) throw params.error(option.name, "names no class", "Leave it out to read all folders.");
  std::set<std::string_view> known;
  for (const std::string& name : names)
    if (!known.insert(name).second)
      throw params.error(option.name, fmt::format("names '{}' twice", name), "Name each class once.");
  return names;
}
constexpr std::array kOptions = with_store_options(with_image_options(std::array{
    option<&Options::path>("path", kRequired, {},
                           "a folder with a folder of images for each class, or image files: a list or a "
                           "pattern (photos/*.jpg); relative to the config file's folder",
                           Change::place),
    option<&Options::labels>(
        "labels", "folder", one_of("folder|none"),
        "folder: the class of an image is the name of its folder; none: images without labels"),
    option_as<class_list, &Options::classes>(
        ParamType::strings, "classes", "null", {},
        "folders of the classes that are read, in the order of the class numbers; null: all, sorted by "
        "their bytes")}));

bool is_folder(const std::string& path) {
  std::error_code unknown;
  return std::filesystem::is_directory(path, unknown);
}

class ImageFileStore final : public SampleStore {
 public:
  /// Samples are the files from `first` on.
  ImageFileStore(ImageForm form, std::shared_ptr<const ImageFiles> files, std::int64_t first)
      : form_(std::move(form)), files_(std::move(files)), first_(first) {}

  void read(std::int64_t first, std::int64_t count, const SampleRoom& to) override {
    ImageWorks::Loan work(works_);
    auto* sample = static_cast<std::uint8_t*>(to.features);
    for (std::int64_t i = 0; i < count; ++i, sample += form_.sample_bytes()) {
      const std::int64_t file = first_ + first + i;
      const std::string path = files_->path(file);
      read_file(path, work->file);
      work->read(
          form_, work->file, [&] { return path; }, sample);
      if (to.label_indices != nullptr) to.label_indices[i] = files_->class_index(file);
    }
  }
  bool decodes_samples() const override { return true; }

 private:
  const ImageForm form_;
  const std::shared_ptr<const ImageFiles> files_;
  const std::int64_t first_;
  ImageWorks works_;
};

/// `labels`: files has the classes.
DatasetParts dataset(const Params& params, ImageForm form, ImageFiles found,
                     const std::optional<RowRange>& rows, std::string source, bool labels) {
  if (found.size() == 0)
    throw Error(ErrorKind::data, "holds no images", source,
                "Images have names that end with .jpg, .jpeg or .png.");
  const RowRange range = checked_rows(rows, found.size(), source);
  const auto files = std::make_shared<const ImageFiles>(std::move(found));
  if (form.shape.rank() == 0) {
    ImageWork work;
    look_at_first_good(params, range.last - range.first, [&](std::int64_t i) {
      const std::string path = files->path(range.first + i);
      read_file(path, work.file);
      form.shape = work.shape_of(form, work.file, [&] { return path; });
    });
  }
  DatasetParts parts;
  parts.source = std::move(source);
  parts.name = [files, first = range.first](std::int64_t sample) { return files->path(first + sample); };
  parts.size = range.last - range.first;
  parts.feature_shape = form.shape;
  parts.feature_dtype = form.dtype();
  parts.transform = transform_options(params);
  if (labels) {
    parts.label_kind = LabelKind::indices;
    parts.num_label_columns = 1;
    parts.class_names = files->classes();
  }
  parts.store = std::make_shared<ImageFileStore>(std::move(form), files, range.first);
  return parts;
}

/// The files of the options `path`, `labels` and `classes`. `source`: how messages call all of them.
ImageFiles listed_files(const Params& params, const std::string& base_directory, std::string& source) {
  const auto options = params.as<Options>();
  const bool labels = options.labels == Labels::folder;
  const std::vector<std::string>* const classes = options.classes ? &*options.classes : nullptr;
  if (classes != nullptr && !labels)
    throw params.error("classes", "labels: none reads no classes", "Leave out one of both.");
  const std::vector<std::string> paths = files_and_folders(options.path, base_directory);
  if (paths.empty())
    throw params.error("path", "names no file", "Give a folder, a list of files, or a pattern.");
  ImageFiles files(params.as<BadRecordOptions>().skip);
  bool has_folder = false;
  for (const std::string& path : paths) {
    if (!is_folder(path)) {
      files.add_file(path);
      continue;
    }
    has_folder = true;
    labels ? files.add_classes(path, classes) : files.add_folder(path);
  }
  if (classes != nullptr && has_folder)
    for (const std::string& name : *classes)
      if (std::ranges::find(files.classes(), name) == files.classes().end())
        throw Error(ErrorKind::data, fmt::format("has no folder of the class '{}'", name),
                    name_of_files(paths),
                    "Correct the option classes. A class may be without images, but not without a folder.");
  if (classes != nullptr)
    files.set_classes(*classes, "Add it to the option classes, or leave out the file.");
  else
    files.sort_classes();
  source = name_of_files(paths);
  return files;
}

DatasetParts make(const Params& params, const std::string& base_directory) {
  ImageForm form = image_form(params);
  std::string source;
  ImageFiles found = listed_files(params, base_directory, source);
  return dataset(params, std::move(form), std::move(found), rows_option(params), source,
                 params.as<Options>().labels == Labels::folder);
}

/// Those of the option `rows`.
std::vector<std::string> files(const Params& params, const std::string& base_directory) {
  std::string source;
  const ImageFiles found = listed_files(params, base_directory, source);
  const RowRange range = checked_rows(rows_option(params), found.size(), source);
  std::vector<std::string> paths;
  for (std::int64_t i = range.first; i < range.last; ++i) paths.push_back(found.path(i));
  return paths;
}

/// Folders are read with all folders in them. There are labels if the first file lies in the folder of a
/// class.
DatasetParts make_input(const Params& params, const InputRequest& request) {
  ImageForm form = image_form(params);
  if (form.shape.rank() == 0) {
    form.shape = request.feature_shape;
    if (form.shape.rank() != 3 || (form.shape.last() != 1 && form.shape.last() != 3))
      throw Error(
          ErrorKind::data,
          fmt::format(
              "images have a height, a width and 1 or 3 channels, and the model reads samples of shape {}",
              form.shape.to_string()),
          name_of_files(request.paths), "Give samples of that shape in another form.");
    form.channels = static_cast<int>(form.shape.last());
  }
  ImageFiles files;
  for (const std::string& path : request.paths)
    is_folder(path) ? files.add_folder(path) : files.add_file(path);
  const std::string source = name_of_files(request.paths);
  check_feature_shape(form.shape, request.feature_shape, source);
  const auto is_class = [&](const std::string& name) {
    return std::ranges::find(request.class_names, name) != request.class_names.end();
  };
  const bool labels = request.labels && files.size() > 0 && is_class(files.class_of(0));
  if (labels)
    files.set_classes(request.class_names, "Give images in folders of the classes of the training data.");
  return dataset(params, std::move(form), std::move(files), std::nullopt, source, labels);
}

}  // namespace

extern const ReaderEntry kImageFolderReader = {
    "images", "folders of JPEG and PNG files, one per class", kOptions, make, make_input, nullptr, true,
    files};

}  // namespace lockstep
