// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/readers/hdf5_groups.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "core/name_pattern.h"
#include "data/data_files.h"
#include "data/reader_options.h"
#include "data/readers/hdf5_numbers.h"
#include "data/readers/hdf5_options.h"
#include "data/readers/hdf5_stored.h"
#include "data/stored_numbers.h"

namespace lockstep {

namespace {

std::string_view without_zeros(std::string_view digits) {
  const auto first = digits.find_first_not_of('0');
  return first == digits.npos ? digits.substr(digits.size() - 1) : digits.substr(first);
}

/// By their bytes, but runs of digits by their numbers.
bool comes_before(std::string_view a, std::string_view b) {
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  const auto number_at = [&](std::string_view text, std::size_t at) {
    std::size_t end = at;
    while (end < text.size() && is_digit(text[end])) ++end;
    return text.substr(at, end - at);
  };
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (!is_digit(a[i]) || !is_digit(b[j])) {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i, ++j;
      continue;
    }
    const std::string_view x = number_at(a, i), y = number_at(b, j);
    const std::string_view left = without_zeros(x), right = without_zeros(y);
    if (left != right) return left.size() != right.size() ? left.size() < right.size() : left < right;
    i += x.size(), j += y.size();
  }
  return a.size() - i != b.size() - j ? a.size() - i < b.size() - j : a < b;
}

herr_t collect(hid_t, const char* name, const H5L_info_t*, void* names) {
  try {
    static_cast<std::vector<std::string>*>(names)->emplace_back(name);
    return 0;
  } catch (...) {
    return -1;  // an exception must not pass through HDF5
  }
}

/// The groups that a pattern such as train/sample_* means.
std::vector<std::string> groups_of(hid_t file, const std::string& path, const std::string& pattern) {
  const auto slash = pattern.rfind('/');
  const std::string parent = slash == pattern.npos ? "/" : pattern.substr(0, slash + 1);
  const NamePattern matching(slash == pattern.npos ? pattern : pattern.substr(slash + 1));
  const Hdf5Context context{ErrorKind::data, fmt::format("{}, group {}", path, parent),
                            "Check the option groups; h5ls shows the groups of a file."};
  const Hdf5Handle group(hdf5_checked(H5Gopen2(file, parent.c_str(), H5P_DEFAULT), context, "open the group"),
                         H5Gclose);
  std::vector<std::string> names, found;
  hdf5_checked(H5Literate(group.get(), H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, collect, &names), context,
               "list its groups");
  for (const std::string& name : names) {
    if (!matching.matches(name)) continue;
    const Hdf5Handle object(H5Oopen(group.get(), name.c_str(), H5P_DEFAULT), H5Oclose);
    if (object.get() >= 0 && H5Iget_type(object.get()) == H5I_GROUP)
      found.push_back(parent == "/" ? name : parent + name);
  }
  H5Eclear2(H5E_DEFAULT);
  if (found.empty())
    throw Error(ErrorKind::data, fmt::format("has no groups '{}'", pattern), path, context.advice);
  std::ranges::sort(found, comes_before);
  return found;
}

/// A dataset or attribute in a group. The caller holds the Hdf5Lock.
class Member {
 public:
  Member(hid_t file, const std::string& path, const std::string& group, const std::string& name,
         const NetcdfOptions& netcdf)
      : where_(fmt::format("{}, dataset {}/{}", path, group, name)) {
    const std::string full = group + "/" + name;
    if (has_hdf5_link(file, full)) {
      id_ =
          Hdf5Handle(hdf5_checked(H5Dopen2(file, full.c_str(), H5P_DEFAULT), context(), "open it"), H5Dclose);
      describe(H5Dget_space(id_.get()));
      if (extents_.empty()) {
        set_type(H5Dget_type(id_.get()), name);
        return;
      }
      data_ = open_hdf5_dataset(file, path, full);
      extents_.assign(data_->extents.begin(), data_->extents.end());
      numbers_ = Hdf5Numbers(*data_, netcdf);
      return;
    }
    if (H5Aexists_by_name(file, group.c_str(), name.c_str(), H5P_DEFAULT) <= 0)
      throw Error(ErrorKind::data, "there is no such dataset or attribute", where_,
                  "Check the options features and labels: each group has them.");
    is_attribute_ = true;
    id_ =
        Hdf5Handle(hdf5_checked(H5Aopen_by_name(file, group.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT),
                                context(), "open it"),
                   H5Aclose);
    describe(H5Aget_space(id_.get()));
    set_type(H5Aget_type(id_.get()), name);
  }

  const std::string& where() const { return where_; }
  const std::vector<std::int64_t>& extents() const { return extents_; }
  DType type() const { return numbers_.meaning.type(); }
  std::int64_t count() const {
    std::int64_t product = 1;
    for (const std::int64_t extent : extents_) product *= extent;
    return product;
  }
  void read(bool allow_fill, void* to) const {
    if (data_) check_stored(*data_, {0, data_->rows()}, allow_fill);
    numbers_.read(
        count(), to, [&](void* stored) { read_stored(stored); }, [&](std::int64_t) { return where_; });
  }

 private:
  Hdf5Context context() const {
    return {ErrorKind::data, where_, "The file may be damaged; h5dump and h5ls show its contents."};
  }
  void describe(hid_t space) {
    const Hdf5Handle owned_space(hdf5_checked(space, context(), "read the extents"), H5Sclose);
    std::vector<hsize_t> extents(static_cast<std::size_t>(
        hdf5_checked(H5Sget_simple_extent_ndims(space), context(), "read the extents")));
    hdf5_checked(H5Sget_simple_extent_dims(space, extents.data(), nullptr), context(), "read the extents");
    extents_.assign(extents.begin(), extents.end());
  }
  void set_type(hid_t type, const std::string& name) {
    const Hdf5Handle owned_type(hdf5_checked(type, context(), "read the type"), H5Tclose);
    numbers_ = Hdf5Numbers(type, name, context());
  }
  void read_stored(void* to) const {
    const hid_t type = numbers_.stored.memory.get();
    if (data_) return read_slab(*data_, 0, data_->rows(), type, to);
    if (is_attribute_)
      hdf5_checked(H5Aread(id_.get(), type, to), context(), "read it");
    else
      hdf5_checked(H5Dread(id_.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, to), context(), "read it");
  }

  std::string where_;
  bool is_attribute_ = false;
  Hdf5Handle id_;
  std::vector<std::int64_t> extents_;
  std::optional<Hdf5Dataset> data_;  ///< of one axis or more
  Hdf5Numbers numbers_;
};

/// What a sample is: the first group says it.
struct Form {
  std::string features;
  std::optional<std::string> labels;
  bool channels_first = false, allow_fill = false;
  NetcdfOptions netcdf;
  std::vector<std::int64_t> extents, label_extents;
  DType type = DType::f32, label_type = DType::i32;
  std::string first;  ///< group
};

struct Group {
  std::size_t file;
  std::string name;
};

class GroupStore final : public SampleStore {
 public:
  GroupStore(Form form, std::vector<std::string> paths, std::shared_ptr<const std::vector<Group>> groups,
             std::int64_t first)
      : form_(std::move(form)), paths_(std::move(paths)), groups_(std::move(groups)), first_(first) {}
  ~GroupStore() override {
    const Hdf5Lock lock;
    file_ = Hdf5Handle();
  }

  void read(std::int64_t first, std::int64_t count, const SampleRoom& to) override {
    auto* features = static_cast<char*>(to.features);
    for (std::int64_t i = 0; i < count; ++i) {
      const Hdf5Lock lock;
      const Group& group = (*groups_)[static_cast<std::size_t>(first_ + first + i)];
      const std::string& path = paths_[group.file];
      const hid_t file = opened(group.file);
      const Member member(file, path, group.name, form_.features, form_.netcdf);
      check(member, form_.extents, form_.type);
      features += read_features(member, features);
      if (!form_.labels) continue;
      const Member label(file, path, group.name, *form_.labels, for_labels(form_.netcdf));
      check(label, form_.label_extents, form_.label_type);
      std::vector<std::int64_t> values(static_cast<std::size_t>(label.count()));
      label.read(form_.allow_fill, values.data());
      convert_labels(values.data(), form_.label_type, label.count(), room_after(to, i, 0, label.count()),
                     [&](std::int64_t) { return label.where(); });
    }
  }

 private:
  hid_t opened(std::size_t file) {
    if (file_.get() < 0 || open_ != file) {
      file_ = hdf5_open_file(paths_[file], hdf5_data_context(paths_[file]));
      open_ = file;
    }
    return file_.get();
  }
  void check(const Member& member, const std::vector<std::int64_t>& extents, DType type) const {
    if (member.extents() == extents && member.type() == type) return;
    throw Error(
        ErrorKind::data,
        fmt::format("its values are {} of extents {}, but those of {} are {} of {}", name_of(member.type()),
                    fmt::join(member.extents(), "x"), form_.first, name_of(type), fmt::join(extents, "x")),
        member.where(), "All groups of a data set need samples and labels of the same form.");
  }
  /// Channels last. Returns their bytes.
  std::int64_t read_features(const Member& member, char* to) const {
    const std::size_t value_bytes = size_in_bytes(form_.type);
    const std::int64_t values = member.count(), bytes = values * static_cast<std::int64_t>(value_bytes);
    if (!form_.channels_first) {
      member.read(form_.allow_fill, to);
      return bytes;
    }
    std::vector<char> stored(static_cast<std::size_t>(bytes));
    member.read(form_.allow_fill, stored.data());
    const std::int64_t channels = form_.extents.front();
    channels_to_last(value_bytes, stored.data(), to, 1, channels, values / channels);
    return bytes;
  }

  const Form form_;
  const std::vector<std::string> paths_;
  const std::shared_ptr<const std::vector<Group>> groups_;
  const std::int64_t first_;
  // Under the Hdf5Lock.
  Hdf5Handle file_;
  std::size_t open_ = 0;
};

void refuse_others(const Params& params) {
  for (const std::string_view name : {"columns", "channels", "classes", "pad_to"})
    if (params.has(name))
      throw params.error(name, "is given beside groups, where each sample is a group", "Leave it out.");
  const auto options = params.as<Hdf5Options>();
  if (options.samples_last)
    throw params.error("sample_axis", "is given beside groups, where each sample is a group",
                       "Leave it out.");
  if (options.window && options.window->time)
    throw params.error("window", "time is given beside groups", "Leave time out: groups follow one another.");
}

}  // namespace

DatasetParts open_hdf5_groups(const Params& params, const std::vector<std::string>& paths,
                              const std::optional<RowRange>& rows, bool labels, bool labels_may_miss) {
  refuse_others(params);
  const auto options = params.as<Hdf5Options>();
  Form form{.features = options.features,
            .labels = labels ? options.labels : std::nullopt,
            .channels_first = options.channels_first,
            .allow_fill = options.allow_fill,
            .netcdf = params.as<NetcdfOptions>()};
  DatasetParts parts;
  parts.source = name_of_files(paths);
  parts.transform = transform_options(params);
  const Hdf5Lock lock;
  const auto groups = std::make_shared<std::vector<Group>>();
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const Hdf5Handle file = hdf5_open_file(paths[i], hdf5_data_context(paths[i]));
    for (std::string& name : groups_of(file.get(), paths[i], *options.groups))
      groups->push_back({i, std::move(name)});
    if (i > 0) continue;
    form.first = groups->front().name;
    const Member features(file.get(), paths[i], form.first, form.features, form.netcdf);
    form.extents = features.extents();
    form.type = parts.feature_dtype = features.type();
    parts.feature_shape = sample_shape(form.extents, form.channels_first, features.where());
    if (labels_may_miss && form.labels && !has_hdf5_link(file.get(), form.first + "/" + *form.labels) &&
        H5Aexists_by_name(file.get(), form.first.c_str(), form.labels->c_str(), H5P_DEFAULT) <= 0)
      form.labels.reset();
    if (!form.labels) continue;
    const Member label(file.get(), paths[i], form.first, *form.labels, for_labels(form.netcdf));
    form.label_extents = label.extents();
    form.label_type = label.type();
    parts.num_label_columns = label.count();
    parts.label_kind = label_kind_of(form.label_type);
  }
  const RowRange range = checked_rows(rows, std::ssize(*groups), parts.source);
  parts.size = range.last - range.first;
  parts.name = [groups, paths, first = range.first](std::int64_t sample) {
    const Group& group = (*groups)[static_cast<std::size_t>(first + sample)];
    return fmt::format("{}, group {}", paths[group.file], group.name);
  };
  parts.store = std::make_shared<GroupStore>(std::move(form), paths, groups, range.first);
  return parts;
}

void try_hdf5_groups(const Params& params, const std::string& path) {
  const DatasetParts parts = open_hdf5_groups(params, {path}, std::nullopt, true, true);
  std::vector<char> features(static_cast<std::size_t>(parts.sample_bytes()));
  std::vector<std::int32_t> indices(static_cast<std::size_t>(parts.num_label_columns));
  std::vector<float> rows(indices.size());
  for (const std::int64_t sample : {std::int64_t{0}, parts.size - 1})
    parts.store->read(
        sample, 1, {.features = features.data(), .label_indices = indices.data(), .label_rows = rows.data()});
}

}  // namespace lockstep
