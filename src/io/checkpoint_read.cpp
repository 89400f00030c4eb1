// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Reading checkpoints.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>

#include "core/hash.h"
#include "io/checkpoint_format.h"
#include "io/file_descriptor.h"
#include "io/hdf5_attribute.h"

namespace lockstep {

namespace {

constexpr int kDeepestGroup = 64;

struct StoredEntry : CheckpointEntry {
  std::uint64_t checksum = 0;
};

std::string name_in_group(hid_t group, hsize_t index, const Hdf5Context& context) {
  const auto length =
      hdf5_checked(H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, index, nullptr, 0, H5P_DEFAULT),
                   context, "list");
  std::string name(static_cast<std::size_t>(length) + 1, '\0');
  hdf5_checked(H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, index, name.data(), name.size(),
                                  H5P_DEFAULT),
               context, "list");
  name.resize(static_cast<std::size_t>(length));
  return name;
}

DType dtype_named(const std::string& name, const Hdf5Context& context) {
  for (DType type : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i32, DType::i64, DType::u8,
                     DType::i8, DType::i16, DType::u16})
    if (name_of(type) == name) return type;
  throw Error(context.kind, fmt::format("has the unknown dtype '{}'", name), context.where, context.advice);
}

Shape shape_of(hid_t dataset, const Hdf5Context& context) {
  const Hdf5Handle space(hdf5_checked(H5Dget_space(dataset), context, "read the shape"), H5Sclose);
  const int rank = hdf5_checked(H5Sget_simple_extent_ndims(space.get()), context, "read the shape");
  if (rank > Shape::kMaxRank)
    throw Error(context.kind, fmt::format("has {} axes", rank), context.where, context.advice);
  std::array<hsize_t, Shape::kMaxRank> extents{};
  hdf5_checked(H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr), context, "read the shape");
  std::array<std::int64_t, Shape::kMaxRank> shape{};
  std::copy(extents.begin(), extents.end(), shape.begin());
  return Shape(std::span(shape).first(static_cast<std::size_t>(rank)));
}

StoredEntry describe(hid_t dataset, std::string path, const Hdf5Context& context) {
  StoredEntry entry;
  entry.path = std::move(path);
  entry.shape = shape_of(dataset, context);
  std::string dtype;
  read_attribute(dataset, "dtype", dtype, context);
  entry.dtype = dtype_named(dtype, context);
  const Hdf5Handle type(hdf5_checked(H5Dget_type(dataset), context, "read the type"), H5Tclose);
  if (hdf5_checked(H5Tequal(type.get(), hdf5_file_type(entry.dtype)), context, "read the type") == 0)
    throw Error(context.kind, fmt::format("is not stored as {}", dtype), context.where, context.advice);
  read_attribute(dataset, "checksum", entry.checksum, context);
  return entry;
}

}  // namespace

struct CheckpointFile::Impl {
  std::string path;
  Hdf5Context context;
  Hdf5Handle file;
  FileDescriptor descriptor;  // of the same file
  CheckpointHeader header;
  std::vector<CheckpointEntry> entries;
  std::vector<std::uint64_t> checksums;

  void read_header();
  void collect(hid_t group, const std::string& prefix, int depth, std::vector<StoredEntry>& found) const;
  Hdf5Context context_of(const std::string& dataset) const {
    return {context.kind, path + ", dataset " + dataset, context.advice};
  }
  std::size_t index_of(const std::string& name) const {
    const auto at = std::lower_bound(
        entries.begin(), entries.end(), name,
        [](const CheckpointEntry& entry, const std::string& key) { return entry.path < key; });
    return at != entries.end() && at->path == name ? static_cast<std::size_t>(at - entries.begin())
                                                   : entries.size();
  }
  std::uint64_t read_pieces(haddr_t address, const Tensor& to, const Hdf5Context& place) const;
  void read(std::size_t index, const Tensor& to) const;
};

void CheckpointFile::Impl::read_header() {
  std::string format;
  read_attribute(file.get(), "format", format, context);
  if (format != kCheckpointFormat)
    throw Error(context.kind, "is not a Lockstep checkpoint", path, context.advice);
  std::int64_t version = 0;
  read_attribute(file.get(), "version", version, context);
  if (version != kCheckpointVersion)
    throw Error(context.kind,
                fmt::format("has format version {}, this program reads {}", version, kCheckpointVersion),
                path, "Use the version of Lockstep that wrote it, or a newer one.");
  read_attribute(file.get(), "global_step", header.global_step, context);
  read_attribute(file.get(), "epoch", header.epoch, context);
  read_attribute(file.get(), "samples_consumed", header.samples_consumed, context);
  read_attribute(file.get(), "shards", header.shards, context);
  read_attribute(file.get(), "seed", header.seed, context);
  read_attribute(file.get(), "config", header.config, context);
  read_attribute(file.get(), "lockstep_version", header.lockstep_version, context);
  read_attribute(file.get(), "created", header.created, context);
  read_attribute(file.get(), "digest", header.digest, context);
  const auto has = [&](const char* name) {
    return hdf5_checked(H5Aexists(file.get(), name), context, "look for an attribute") > 0;
  };
  if (has("computed_on")) read_attribute(file.get(), "computed_on", header.computed_on, context);
  if (has("content")) {
    std::string content;
    read_attribute(file.get(), "content", content, context);
    if (content != kWeightsOnly)
      throw Error(context.kind, fmt::format("has the unknown content '{}'", content), path, context.advice);
    header.weights_only = true;
  }
  std::uint64_t checksum = 0;
  read_attribute(file.get(), "header_checksum", checksum, context);
  if (checksum != checkpoint_header_checksum(header, version))
    throw Error(context.kind, "the header's checksum is wrong", path, context.advice);
  header.kept = read_kept_files(file.get(), kDataGroup, context);
  if (const auto settings = read_kept_files(file.get(), kSettingsGroup, context)) header.settings = *settings;
}

void CheckpointFile::Impl::collect(hid_t group, const std::string& prefix, int depth,
                                   std::vector<StoredEntry>& found) const {
  if (depth > kDeepestGroup)
    throw Error(context.kind, "its groups are nested too deeply", path, context.advice);
  H5G_info_t info{};
  hdf5_checked(H5Gget_info(group, &info), context, "list");
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    const std::string name = name_in_group(group, i, context);
    const Hdf5Context place = context_of(prefix + name);
    const Hdf5Handle object(hdf5_checked(H5Oopen(group, name.c_str(), H5P_DEFAULT), place, "open"), H5Oclose);
    switch (H5Iget_type(object.get())) {
      case H5I_GROUP:
        collect(object.get(), prefix + name + "/", depth + 1, found);
        break;
      case H5I_DATASET:
        found.push_back(describe(object.get(), prefix + name, place));
        break;
      default:
        throw Error(context.kind, "is neither a group nor a dataset", place.where, context.advice);
    }
  }
}

/// Reads the bytes of a contiguous dataset and returns their hash. It reads piece by piece, so that each
/// piece is hashed while it is in the cache.
std::uint64_t CheckpointFile::Impl::read_pieces(haddr_t address, const Tensor& to,
                                                const Hdf5Context& place) const {
  constexpr std::size_t kPieceBytes = 256 << 10;
  Hash64 hash;
  auto* at = static_cast<char*>(to.raw());
  for (std::size_t left = to.size_bytes(); left > 0;) {
    const ssize_t got =
        ::pread(descriptor.get(), at, std::min(left, kPieceBytes), static_cast<off_t>(address));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw file_error(place.kind, "read", place.where, errno);
    if (got == 0) throw Error(place.kind, "the file ends before the data do", place.where, place.advice);
    const auto bytes = static_cast<std::size_t>(got);
    hash.add(at, bytes);
    at += bytes;
    address += bytes;
    left -= bytes;
  }
  return hash.value();
}

void CheckpointFile::Impl::read(std::size_t index, const Tensor& to) const {
  const CheckpointEntry& entry = entries[index];
  const Hdf5Context place = context_of(entry.path);
  haddr_t address = HADDR_UNDEF;
  if (to.num_elements() > 0) {
    const Hdf5Lock lock;
    const Hdf5Handle dataset(
        hdf5_checked(H5Dopen2(file.get(), entry.path.c_str(), H5P_DEFAULT), place, "open"), H5Dclose);
    // Lockstep's datasets are contiguous and have the memory layout. HDF5 reads those that another program
    // has rewritten in chunks.
    if (std::endian::native == std::endian::little) address = H5Dget_offset(dataset.get());
    if (address == HADDR_UNDEF)
      hdf5_checked(
          H5Dread(dataset.get(), hdf5_memory_type(entry.dtype), H5S_ALL, H5S_ALL, H5P_DEFAULT, to.raw()),
          place, "read");
  }
  const std::uint64_t checksum =
      address == HADDR_UNDEF ? hash64(to.raw(), to.size_bytes()) : read_pieces(address, to, place);
  if (checksum != checksums[index])
    throw Error(place.kind, "the checksum is wrong: the data are damaged", place.where, place.advice);
}

namespace {

/// Whether both are open files of one inode. HDF5 gives the descriptor of its default driver.
bool are_same_file(const Hdf5Handle& file, const FileDescriptor& descriptor) {
  void* of_hdf5 = nullptr;
  if (H5Fget_vfd_handle(file.get(), H5P_DEFAULT, &of_hdf5) < 0 || of_hdf5 == nullptr) {
    H5Eclear2(H5E_DEFAULT);
    return true;
  }
  struct stat first {
  }, second{};
  return ::fstat(*static_cast<const int*>(of_hdf5), &first) != 0 || ::fstat(descriptor.get(), &second) != 0 ||
         (first.st_dev == second.st_dev && first.st_ino == second.st_ino);
}

}  // namespace

CheckpointFile::CheckpointFile(const std::string& path) : impl_(std::make_unique<Impl>()) {
  const Hdf5Lock lock;
  impl_->path = path;
  impl_->context = {ErrorKind::checkpoint, path,
                    "The file is damaged or not a checkpoint: use an older one."};
  do {  // again if a run that was set back has put another file there between the two
    impl_->file = hdf5_open_file(path, impl_->context);
    impl_->descriptor = FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!impl_->descriptor.is_open()) throw file_error(ErrorKind::checkpoint, "open", path, errno);
  } while (!are_same_file(impl_->file, impl_->descriptor));
  impl_->read_header();
  std::vector<StoredEntry> found;
  impl_->collect(impl_->file.get(), "", 0, found);
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  for (StoredEntry& entry : found) {
    impl_->checksums.push_back(entry.checksum);
    impl_->entries.push_back(std::move(entry));
  }
}

CheckpointFile::~CheckpointFile() = default;
CheckpointFile::CheckpointFile(CheckpointFile&&) noexcept = default;
CheckpointFile& CheckpointFile::operator=(CheckpointFile&&) noexcept = default;

const std::string& CheckpointFile::path() const { return impl_->path; }
const CheckpointHeader& CheckpointFile::header() const { return impl_->header; }
const std::vector<CheckpointEntry>& CheckpointFile::entries() const { return impl_->entries; }
bool CheckpointFile::has(const std::string& path) const {
  return impl_->index_of(path) < impl_->entries.size();
}

void CheckpointFile::read_into(const std::string& path, Tensor to) const {
  const std::size_t index = impl_->index_of(path);
  if (index == impl_->entries.size())
    throw Error(
        ErrorKind::checkpoint, fmt::format("has no dataset {}", path), impl_->path,
        "The model differs from the one that was saved; 'lockstep inspect' shows what the file holds.");
  const CheckpointEntry& entry = impl_->entries[index];
  if (!(entry.shape == to.shape()) || entry.dtype != to.dtype())
    throw Error(ErrorKind::checkpoint,
                fmt::format("is {} of {}, expected {} of {}", name_of(entry.dtype), entry.shape.to_string(),
                            name_of(to.dtype()), to.shape().to_string()),
                impl_->context_of(path).where,
                "The model differs from the one that was saved: use the configuration of that run.");
  impl_->read(index, to);
}

void CheckpointFile::verify() const {
  CheckpointDigest digest;
  std::vector<std::uint64_t> block;  // of integers: aligned for every dtype
  for (std::size_t i = 0; i < impl_->entries.size(); ++i) {
    const CheckpointEntry& entry = impl_->entries[i];
    const std::size_t bytes = Tensor(nullptr, entry.dtype, entry.shape).size_bytes();
    block.resize(bytes / sizeof(std::uint64_t) + 1);
    const Tensor tensor(block.data(), entry.dtype, entry.shape);
    impl_->read(i, tensor);
    digest.add(entry.path, tensor);
  }
  const std::string found = digest.finish(impl_->header);
  if (found != impl_->header.digest)
    throw Error(ErrorKind::checkpoint,
                fmt::format("the digest is wrong: the header has {}, the contents have {}",
                            impl_->header.digest, found),
                impl_->path, impl_->context.advice);
}

}  // namespace lockstep
