// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Texts of a run as attributes of a group of a checkpoint: the files that it keeps of its data (/data), and
// the settings that its state depends on (/state_settings). They are not tensors: programs that know nothing
// of them read the file as before, and its digest is as before. On-disk names: do not change.
#include "core/error.h"
#include "io/checkpoint_format.h"
#include "io/hdf5_attribute.h"

namespace lockstep {

namespace {

constexpr const char* kChecksum = "checksum";

std::uint64_t checksum_of(const KeptFiles& kept) {
  Hash64 hash;
  for (const auto& [name, contents] : kept)
    for (const std::string* text : {&name, &contents}) {
      const std::uint64_t size = text->size();
      hash.add(&size, sizeof size);
      hash.add(text->data(), text->size());
    }
  return hash.value();
}

void write_bytes(hid_t group, const std::string& name, const std::string& bytes, const Hdf5Context& context) {
  const std::string what = fmt::format("write attribute '{}'", name);
  const hsize_t count = bytes.size();
  const Hdf5Handle space(
      hdf5_checked(count > 0 ? H5Screate_simple(1, &count, nullptr) : H5Screate(H5S_NULL), context, what),
      H5Sclose);
  Hdf5Handle attribute(
      hdf5_checked(H5Acreate2(group, name.c_str(), H5T_STD_U8LE, space.get(), H5P_DEFAULT, H5P_DEFAULT),
                   context, what),
      H5Aclose);
  if (count > 0) hdf5_checked(H5Awrite(attribute.get(), H5T_NATIVE_UINT8, bytes.data()), context, what);
  hdf5_checked(attribute.close(), context, what);
}

std::string name_of_attribute(hid_t attribute, const Hdf5Context& context) {
  const auto length = hdf5_checked(H5Aget_name(attribute, 0, nullptr), context, "list attributes");
  std::string name(static_cast<std::size_t>(length) + 1, '\0');
  hdf5_checked(H5Aget_name(attribute, name.size(), name.data()), context, "list attributes");
  name.resize(static_cast<std::size_t>(length));
  return name;
}

std::string read_bytes(hid_t attribute, const std::string& name, const Hdf5Context& context) {
  const std::string what = fmt::format("read attribute '{}'", name);
  const Hdf5Handle space(hdf5_checked(H5Aget_space(attribute), context, what), H5Sclose);
  const Hdf5Handle type(hdf5_checked(H5Aget_type(attribute), context, what), H5Tclose);
  if (H5Tget_class(type.get()) != H5T_INTEGER || H5Tget_size(type.get()) != 1)
    throw Error(context.kind, fmt::format("attribute '{}' is no array of bytes", name), context.where,
                context.advice);
  std::string bytes(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space.get())), '\0');
  if (!bytes.empty()) hdf5_checked(H5Aread(attribute, H5T_NATIVE_UINT8, bytes.data()), context, what);
  return bytes;
}

}  // namespace

void write_kept_files(hid_t file, const char* name_of_group, const KeptFiles& kept,
                      const Hdf5Context& context) {
  const Hdf5Lock lock;
  Hdf5Handle group(hdf5_checked(H5Gcreate2(file, name_of_group, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                                context, fmt::format("create /{}", name_of_group)),
                   H5Gclose);
  for (const auto& [name, contents] : kept) {
    LOCKSTEP_CHECK(!name.empty() && name != kChecksum, "a kept file is named '{}'", name);
    write_bytes(group.get(), name, contents, context);
  }
  write_attribute(group.get(), kChecksum, checksum_of(kept), context);
  hdf5_checked(group.close(), context, fmt::format("close /{}", name_of_group));
}

std::shared_ptr<const KeptFiles> read_kept_files(hid_t file, const char* name_of_group,
                                                 const Hdf5Context& context) {
  const Hdf5Lock lock;
  if (hdf5_checked(H5Lexists(file, name_of_group, H5P_DEFAULT), context, "look for a group") == 0)
    return nullptr;
  const Hdf5Handle group(hdf5_checked(H5Gopen2(file, name_of_group, H5P_DEFAULT), context,
                                      fmt::format("open /{}", name_of_group)),
                         H5Gclose);
  const int count = hdf5_checked(H5Aget_num_attrs(group.get()), context, "list attributes");
  auto kept = std::make_shared<KeptFiles>();
  for (int i = 0; i < count; ++i) {
    const Hdf5Handle attribute(hdf5_checked(H5Aopen_by_idx(group.get(), ".", H5_INDEX_NAME, H5_ITER_INC,
                                                           static_cast<hsize_t>(i), H5P_DEFAULT, H5P_DEFAULT),
                                            context, "list attributes"),
                               H5Aclose);
    const std::string name = name_of_attribute(attribute.get(), context);
    if (name != kChecksum) kept->emplace(name, read_bytes(attribute.get(), name, context));
  }
  std::uint64_t checksum = 0;
  read_attribute(group.get(), kChecksum, checksum, context);
  if (checksum != checksum_of(*kept))
    throw Error(
        context.kind,
        fmt::format("the checksum of /{} is wrong: what the run keeps there is damaged", name_of_group),
        context.where, context.advice);
  return kept;
}

}  // namespace lockstep
