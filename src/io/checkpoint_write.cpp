// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Writing checkpoints.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <numeric>
#include <optional>

#include "core/fault.h"
#include "io/atomic_file.h"
#include "io/checkpoint_format.h"
#include "io/file_descriptor.h"
#include "io/hdf5_attribute.h"
#include "io/hdf5_output.h"

namespace lockstep {

namespace {

constexpr std::size_t kBytesPerDataset = 1024;  // upper bound of HDF5's own structures
constexpr std::size_t kBytesPerFile = 65536;

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

std::vector<std::size_t> order_of_paths(std::span<const CheckpointTensor> tensors) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return tensors[a].path < tensors[b].path; });
  return order;
}

void check_paths(std::span<const CheckpointTensor> tensors, const std::vector<std::size_t>& order) {
  const std::string* previous = nullptr;
  for (std::size_t i : order) {
    const std::string& path = tensors[i].path;
    LOCKSTEP_CHECK(!path.empty() && path.front() != '/' && path.back() != '/' &&
                       path.find("//") == std::string::npos && path.find('\0') == std::string::npos &&
                       ('/' + path + '/').find("/./") == std::string::npos,
                   "the path of a tensor is '{}'", path);
    LOCKSTEP_CHECK(previous == nullptr || *previous != path, "two tensors have the path '{}'", path);
    previous = &path;
  }
}

Error disk_full(const std::string& path, std::size_t needed) {
  return Error(
      ErrorKind::checkpoint,
      fmt::format("the disk is full: a checkpoint needs {:.1f} MB, {:.1f} MB are free",
                  static_cast<double>(needed) / 1e6,
                  static_cast<double>(free_bytes(std::filesystem::path(path).parent_path().string())) / 1e6),
      path, "Free some space, lower checkpoint.keep, or choose a run directory on another disk.");
}

/// Reserves the disk space before anything is written, because HDF5 does not recover well from a full disk.
/// Where the file system cannot reserve space, a full disk is detected later.
void reserve(int file, const std::string& path, std::size_t needed) {
#ifdef FALLOC_FL_KEEP_SIZE
  int result;
  do {
    result = ::fallocate(file, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(needed));
  } while (result != 0 && errno == EINTR);
  if (result != 0 && (errno == ENOSPC || errno == EDQUOT)) throw disk_full(path, needed);
#else
  (void)file;
  (void)path;
  (void)needed;
#endif
}

/// Releases reserved space that was not used.
void trim(int file, const std::string& path) {
  struct stat status {};
  if (::fstat(file, &status) != 0) throw file_error(ErrorKind::checkpoint, "query", path, errno);
  if (::ftruncate(file, status.st_size) != 0) throw file_error(ErrorKind::checkpoint, "trim", path, errno);
}

Hdf5Handle create_hdf5(const std::string& name, Hdf5Output& output, const Hdf5Context& context) {
  const Hdf5Lock lock;
  const Hdf5Handle access = hdf5_access_properties(context);
  // The file format of HDF5 1.8: its structures have checksums, and every HDF5 since 2008 reads it.
  hdf5_checked(H5Pset_libver_bounds(access.get(), H5F_LIBVER_V18, H5F_LIBVER_LATEST), context,
               "choose the format");
  hdf5_write_to(access, output, context);
  return {hdf5_checked(H5Fcreate(name.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), context, "create"),
          H5Fclose};
}

/// Throws the error that the file driver has hidden from HDF5.
void check_output(const Hdf5Output& output, const std::string& path, std::size_t needed) {
  if (output.error == ECANCELED)
    throw Error(ErrorKind::checkpoint, "writing was cancelled", path, "Older checkpoints are untouched.");
  if (output.error == ENOSPC || output.error == EDQUOT) throw disk_full(path, needed);
  if (output.error != 0) throw file_error(ErrorKind::checkpoint, "write", path, output.error);
}

/// Writes the tensor's bytes as they come, and adds them to the digest. Returns their checksum. The lock is
/// not held while it waits for them.
std::uint64_t write_pieces(hid_t dataset, const CheckpointTensor& entry, CheckpointDigest& digest,
                           const Hdf5Context& context) {
  const Shape& shape = entry.tensor.shape();
  const std::size_t row_bytes =
      shape.rank() == 0
          ? entry.tensor.size_bytes()
          : entry.tensor.size_bytes() / static_cast<std::size_t>(std::max<std::int64_t>(shape[0], 1));
  Hash64 hash;
  hsize_t row = 0;
  entry.pieces([&](const void* data, std::size_t bytes) {
    hash.add(data, bytes);
    digest.add_bytes(data, bytes);
    std::array<hsize_t, Shape::kMaxRank> first{}, count{};
    for (int axis = 0; axis < shape.rank(); ++axis)
      count[static_cast<std::size_t>(axis)] = static_cast<hsize_t>(shape[axis]);
    first[0] = row;
    count[0] = bytes / row_bytes;
    row += count[0];
    const Hdf5Lock lock;
    const Hdf5Handle in_file(hdf5_checked(H5Dget_space(dataset), context, "describe the shape"), H5Sclose);
    const Hdf5Handle in_memory(
        hdf5_checked(
            shape.rank() == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(shape.rank(), count.data(), nullptr),
            context, "describe the shape"),
        H5Sclose);
    if (shape.rank() > 0)
      hdf5_checked(
          H5Sselect_hyperslab(in_file.get(), H5S_SELECT_SET, first.data(), nullptr, count.data(), nullptr),
          context, "select rows");
    hdf5_checked(H5Dwrite(dataset, hdf5_memory_type(entry.tensor.dtype()), in_memory.get(), in_file.get(),
                          H5P_DEFAULT, data),
                 context, "write");
  });
  return hash.value();
}

void write_dataset(const Hdf5Handle& file, const CheckpointTensor& entry, CheckpointDigest& digest,
                   const Hdf5Context& file_context) {
  const Tensor& tensor = entry.tensor;
  const Hdf5Context context{file_context.kind, file_context.where + ", dataset " + entry.path,
                            file_context.advice};
  digest.begin(entry.path, tensor);
  std::uint64_t checksum = 0;
  if (!entry.pieces) {
    digest.add_bytes(tensor.raw(), tensor.size_bytes());
    checksum = hash64(tensor.raw(), tensor.size_bytes());
  }

  std::optional<Hdf5Lock> lock(std::in_place);
  const Hdf5Handle links(hdf5_checked(H5Pcreate(H5P_LINK_CREATE), context, "create properties"), H5Pclose);
  hdf5_checked(H5Pset_create_intermediate_group(links.get(), 1), context, "request groups");
  const Hdf5Handle layout(hdf5_checked(H5Pcreate(H5P_DATASET_CREATE), context, "create properties"),
                          H5Pclose);
  hdf5_checked(H5Pset_layout(layout.get(), H5D_CONTIGUOUS), context, "set the layout");
  hdf5_checked(H5Pset_fill_time(layout.get(), H5D_FILL_TIME_NEVER), context, "switch off filling");
  hdf5_checked(H5Pset_obj_track_times(layout.get(), false), context, "switch off times");

  std::array<hsize_t, Shape::kMaxRank> extents{};
  const Shape& shape = tensor.shape();
  for (int axis = 0; axis < shape.rank(); ++axis)
    extents[static_cast<std::size_t>(axis)] = static_cast<hsize_t>(shape[axis]);
  const Hdf5Handle space(
      hdf5_checked(
          shape.rank() == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(shape.rank(), extents.data(), nullptr),
          context, "describe the shape"),
      H5Sclose);
  Hdf5Handle dataset(hdf5_checked(H5Dcreate2(file.get(), entry.path.c_str(), hdf5_file_type(tensor.dtype()),
                                             space.get(), links.get(), layout.get(), H5P_DEFAULT),
                                  context, "create"),
                     H5Dclose);
  if (entry.pieces) {
    lock.reset();
    checksum = write_pieces(dataset.get(), entry, digest, context);
    lock.emplace();
  } else if (tensor.num_elements() > 0)
    hdf5_checked(H5Dwrite(dataset.get(), hdf5_memory_type(tensor.dtype()), H5S_ALL, H5S_ALL, H5P_DEFAULT,
                          tensor.raw()),
                 context, "write");
  write_attribute(dataset.get(), "dtype", std::string(name_of(tensor.dtype())), context);
  write_attribute(dataset.get(), "checksum", checksum, context);
  hdf5_checked(dataset.close(), context, "close");
}

void write_header(const Hdf5Handle& file, const CheckpointHeader& header, const Hdf5Context& context) {
  write_attribute(file.get(), "format", std::string(kCheckpointFormat), context);
  write_attribute(file.get(), "version", kCheckpointVersion, context);
  write_attribute(file.get(), "global_step", header.global_step, context);
  write_attribute(file.get(), "epoch", header.epoch, context);
  write_attribute(file.get(), "samples_consumed", header.samples_consumed, context);
  write_attribute(file.get(), "shards", header.shards, context);
  write_attribute(file.get(), "seed", header.seed, context);
  write_attribute(file.get(), "config", header.config, context);
  write_attribute(file.get(), "lockstep_version", header.lockstep_version, context);
  write_attribute(file.get(), "created", header.created, context);
  write_attribute(file.get(), "digest", header.digest, context);
  if (!header.computed_on.empty()) write_attribute(file.get(), "computed_on", header.computed_on, context);
  if (header.weights_only) write_attribute(file.get(), "content", std::string(kWeightsOnly), context);
  if (header.kept != nullptr) write_kept_files(file.get(), kDataGroup, *header.kept, context);
  if (!header.settings.empty()) write_kept_files(file.get(), kSettingsGroup, header.settings, context);
  write_attribute(file.get(), "header_checksum", checkpoint_header_checksum(header, kCheckpointVersion),
                  context);
}

/// Writes the tensors in path order, each hashed just before it is written, while the disk is busy with the
/// previous ones. The header with their digest comes last.
void write_file(int to, CheckpointHeader header, std::span<const CheckpointTensor> tensors,
                const std::vector<std::size_t>& order, const std::string& path,
                const std::atomic<bool>* cancelled) {
  const std::size_t needed = checkpoint_file_bytes(header, tensors);
  reserve(to, path, needed);
  const Hdf5Context context{ErrorKind::checkpoint, path, "Older checkpoints are untouched."};
  Hdf5Output output{.descriptor = to, .cancelled = cancelled};
  Hdf5Handle file = create_hdf5(path, output, context);
  try {
    CheckpointDigest digest;
    for (std::size_t i : order) {
      write_dataset(file, tensors[i], digest, context);
      if (output.error != 0) break;
    }
    header.digest = digest.finish(header);
    write_header(file, header, context);
    const Hdf5Lock lock;
    hdf5_checked(H5Fflush(file.get(), H5F_SCOPE_LOCAL), context, "flush");
    hdf5_checked(file.close(), context, "close");
  } catch (const Error&) {
    check_output(output, path, needed);  // the original cause, if HDF5 failed as a consequence
    throw;
  }
  check_output(output, path, needed);
  trim(to, path);
}

}  // namespace

std::size_t checkpoint_file_bytes(const CheckpointHeader& header, std::span<const CheckpointTensor> tensors) {
  std::size_t bytes = kBytesPerFile + header.config.size() + header.computed_on.size();
  for (const CheckpointTensor& entry : tensors)
    bytes += entry.tensor.size_bytes() + entry.path.size() + kBytesPerDataset;
  const auto bytes_of = [](const KeptFiles& texts) {
    std::size_t sum = 0;
    for (const auto& [name, contents] : texts) sum += name.size() + contents.size() + kBytesPerDataset;
    return sum;
  };
  if (header.kept != nullptr) bytes += bytes_of(*header.kept);
  // The usual settings are part of kBytesPerFile: what is needed is known before hooks have declared theirs.
  constexpr std::size_t kUsualSettings = 32 << 10;
  if (const std::size_t settings = bytes_of(header.settings); settings > kUsualSettings) bytes += settings;
  return bytes;
}

std::uint64_t checkpoint_header_checksum(const CheckpointHeader& header, std::int64_t version) {
  std::string text =
      fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n", kCheckpointFormat, version, header.global_step,
                  header.epoch, header.samples_consumed, header.shards, header.seed);
  for (const std::string* part : {&header.config, &header.lockstep_version, &header.created, &header.digest})
    text += fmt::format("{}\n{}\n", part->size(), *part);
  if (header.weights_only) text += kWeightsOnly;
  return hash64(text);
}

void CheckpointDigest::begin(const std::string& path, const Tensor& tensor) {
  digest_.add(path)
      .add(static_cast<std::int64_t>(tensor.dtype()))
      .add(static_cast<std::int64_t>(tensor.shape().rank()));
  for (std::int64_t extent : tensor.shape().extents()) digest_.add(extent);
}

void CheckpointDigest::add_bytes(const void* data, std::size_t bytes) { digest_.add(data, bytes); }

void CheckpointDigest::add(const std::string& path, const Tensor& tensor) {
  begin(path, tensor);
  add_bytes(tensor.raw(), tensor.size_bytes());
}

std::string CheckpointDigest::finish(const CheckpointHeader& header) {
  digest_.add(header.global_step).add(header.epoch).add(header.samples_consumed).add(header.shards);
  digest_.add(static_cast<std::int64_t>(header.seed));
  // One line: batches and data never changed, and the step says the rest.
  if (const std::string clock = header.setting(kClockSettings); std::ranges::count(clock, '\n') > 1)
    digest_.add(clock);
  return digest_.hex();
}

std::string checkpoint_digest(const CheckpointHeader& header, std::span<const CheckpointTensor> tensors) {
  CheckpointDigest digest;
  for (std::size_t i : order_of_paths(tensors)) digest.add(tensors[i].path, tensors[i].tensor);
  return digest.finish(header);
}

void write_checkpoint_to(int descriptor, const std::string& path, CheckpointHeader header,
                         std::span<const CheckpointTensor> tensors, const std::atomic<bool>* cancelled) {
  for (const CheckpointTensor& entry : tensors)
    LOCKSTEP_CHECK(!entry.on_device, "{} is on a device", entry.path);
  const std::vector<std::size_t> order = order_of_paths(tensors);
  check_paths(tensors, order);
  if (header.created.empty()) header.created = utc_now();
  write_file(descriptor, std::move(header), tensors, order, path, cancelled);
}

void write_checkpoint(const std::string& path, CheckpointHeader header,
                      std::span<const CheckpointTensor> tensors, const std::atomic<bool>* cancelled) {
  const FaultStep step_of_faults(header.global_step);
  const std::string temporary = temporary_name(path);
  RemoveOnFailure cleanup(temporary);
  ::unlink(temporary.c_str());
  FileDescriptor file(::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file.is_open()) throw file_error(ErrorKind::checkpoint, "create a temporary file", path, errno);
  write_checkpoint_to(file.get(), path, std::move(header), tensors, cancelled);
  if (file.close() != 0) throw file_error(ErrorKind::checkpoint, "close", path, errno);
  publish_file(temporary, path, ErrorKind::checkpoint);
  cleanup.keep();
}

}  // namespace lockstep
