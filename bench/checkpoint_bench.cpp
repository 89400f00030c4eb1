// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Checkpoint speed in GB/s: written (including checksums, flush, fsync and rename), read with all checksums
// verified, and verified as a whole (including the digest). Comparisons: a plain write, fsync and read of the
// same number of bytes, and HDF5 without checksums. Also the time that training waits for a background
// checkpoint.
//
//   checkpoint_bench [--megabytes N] [--folder DIR] [--repeats N] [--threads N] [--json FILE]
//
// Best and median of the repeats. Reads come from the page cache, as after a write; the disk's read speed is
// not measured.
#include <fcntl.h>
#include <hdf5.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/buffer.h"
#include "core/cpu.h"
#include "core/error.h"
#include "core/thread_pool.h"
#include "core/timer.h"
#include "io/checkpoint.h"
#include "io/checkpoint_writer.h"

namespace {

using namespace lockstep;

struct Arguments {
  std::int64_t megabytes = 256, repeats = 3, threads = 1;
  std::string folder, json;
};

std::int64_t number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value <= 0)
    throw Error(ErrorKind::usage, fmt::format("'{}' is not a positive number", text));
  return value;
}

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i];
    if (i + 1 >= argc) throw Error(ErrorKind::usage, fmt::format("{} needs a value", name));
    const std::string_view value = argv[i + 1];
    if (name == "--megabytes")
      arguments.megabytes = number(value);
    else if (name == "--repeats")
      arguments.repeats = number(value);
    else if (name == "--threads")
      arguments.threads = number(value);
    else if (name == "--folder")
      arguments.folder = value;
    else if (name == "--json")
      arguments.json = value;
    else
      throw Error(ErrorKind::usage, fmt::format("unknown option {}", name), {},
                  "--megabytes N, --folder DIR, --repeats N, --threads N, --json FILE");
  }
  return arguments;
}

/// A temporary folder, removed by the destructor.
class Folder {
 public:
  explicit Folder(const std::string& parent) {
    const std::filesystem::path where =
        parent.empty() ? std::filesystem::temp_directory_path() : std::filesystem::path(parent);
    std::string name = (where / "lockstep-bench-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
      throw Error(ErrorKind::data, "a temporary folder could not be created", where.string(),
                  "Choose another with --folder.");
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(const char* name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

[[noreturn]] void failed(const char* what, const std::string& path) {
  throw Error(ErrorKind::data, fmt::format("{} failed: {}", what, std::strerror(errno)), path);
}

void plain_write(const std::string& path, const Buffer& bytes) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) failed("open", path);
  for (std::size_t done = 0; done < bytes.size_bytes();) {
    const std::size_t piece = std::min<std::size_t>(bytes.size_bytes() - done, std::size_t{16} << 20);
    const ssize_t written = write(file, static_cast<const char*>(bytes.data()) + done, piece);
    if (written <= 0) failed("write", path);
    done += static_cast<std::size_t>(written);
  }
  if (fsync(file) != 0) failed("fsync", path);
  if (close(file) != 0) failed("close", path);
}

void plain_read(const std::string& path, const Buffer& bytes) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) failed("open", path);
  for (std::size_t done = 0; done < bytes.size_bytes();) {
    const ssize_t count = read(file, static_cast<char*>(bytes.data()) + done, bytes.size_bytes() - done);
    if (count <= 0) failed("read", path);
    done += static_cast<std::size_t>(count);
  }
  if (close(file) != 0) failed("close", path);
}

hid_t hdf5(hid_t id) {
  if (id < 0) throw Error(ErrorKind::data, "a call of HDF5 failed");
  return id;
}

/// Writes as a program without checksums and temporary files does.
void hdf5_write(const std::string& path, const std::vector<CheckpointTensor>& tensors) {
  const hid_t file = hdf5(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto extent = static_cast<hsize_t>(tensors[i].tensor.num_elements());
    const hid_t space = hdf5(H5Screate_simple(1, &extent, nullptr));
    const hid_t dataset = hdf5(H5Dcreate2(file, fmt::format("layer{}", i).c_str(), H5T_IEEE_F32LE, space,
                                          H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    hdf5(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, tensors[i].tensor.raw()));
    hdf5(H5Dclose(dataset));
    hdf5(H5Sclose(space));
  }
  hdf5(H5Fclose(file));
  const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) failed("open", path);
  if (fsync(descriptor) != 0) failed("fsync", path);
  if (close(descriptor) != 0) failed("close", path);
}

void hdf5_read(const std::string& path, std::size_t count, const Buffer& to) {
  const hid_t file = hdf5(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  auto* at = static_cast<char*>(to.data());
  for (std::size_t i = 0; i < count; ++i) {
    const hid_t dataset = hdf5(H5Dopen2(file, fmt::format("layer{}", i).c_str(), H5P_DEFAULT));
    hdf5(H5Dread(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, at));
    at += H5Dget_storage_size(dataset);
    hdf5(H5Dclose(dataset));
  }
  hdf5(H5Fclose(file));
}

struct Figure {
  std::string name;
  double best, median;   ///< GB/s
  bool blocked = false;  ///< the value is the time that training waits
};

Figure figure_of(const std::string& name, double gigabytes, std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const Figure figure{name, gigabytes / seconds.front(), gigabytes / seconds[seconds.size() / 2]};
  fmt::print("{:<46} {:8.2f} {:8.2f}\n", name, figure.best, figure.median);
  std::fflush(stdout);
  return figure;
}

Figure measure(const std::string& name, double gigabytes, std::int64_t repeats,
               const std::function<void()>& call) {
  std::vector<double> seconds;
  for (std::int64_t r = 0; r < repeats; ++r) {
    const Timer timer;
    call();
    seconds.push_back(timer.seconds());
  }
  return figure_of(name, gigabytes, std::move(seconds));
}

/// Measures how long training waits and when the file is durable, one checkpoint after the other.
void measure_background(const Arguments& arguments, double gigabytes, const std::string& run_dir,
                        const std::vector<CheckpointTensor>& tensors, std::vector<Figure>& figures) {
  ThreadPool pool(static_cast<int>(arguments.threads));
  CheckpointWriter writer(std::make_shared<CheckpointStore>(run_dir, 1), tensors, {.pool = &pool});
  std::vector<double> blocked, durable;
  for (std::int64_t r = 0; r < arguments.repeats; ++r) {
    writer.start({.global_step = r, .shards = 1}, tensors);
    if (!writer.wait(600)) throw Error(ErrorKind::data, "a checkpoint took longer than 600 s", run_dir);
    const CheckpointOutcome outcome = writer.poll().at(0);
    if (outcome.error) throw Error(*outcome.error);
    blocked.push_back(outcome.blocked_seconds);
    durable.push_back(outcome.blocked_seconds + outcome.write_seconds);
  }
  figures.push_back(figure_of(fmt::format("background save, {} thread{}: training waits", arguments.threads,
                                          arguments.threads == 1 ? "" : "s"),
                              gigabytes, std::move(blocked)));
  figures.back().blocked = true;
  figures.push_back(figure_of("background save, until it is durable", gigabytes, std::move(durable)));
}

std::vector<Figure> run(const Arguments& arguments) {
  // Like a model with momentum: tensors of 4 MiB and one for the remainder.
  constexpr std::size_t kTensor = std::size_t{4} << 20;
  const std::size_t total =
      static_cast<std::size_t>(arguments.megabytes) * 1'000'000 / sizeof(float) * sizeof(float);
  const Buffer values(cpu_device(), total), back(cpu_device(), total);
  std::uint64_t state = 1;
  for (float& value : values.as<float>()) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    value = static_cast<float>(state >> 40) * 0x1p-24F - 0.5F;
  }
  std::fill_n(static_cast<char*>(back.data()), total, '\0');
  std::vector<CheckpointTensor> tensors;
  const auto tensor = [](const Buffer& buffer, std::size_t at, std::size_t bytes) {
    return Tensor{static_cast<char*>(buffer.data()) + at, DType::f32,
                  Shape{static_cast<std::int64_t>(bytes / sizeof(float))}};
  };
  for (std::size_t at = 0; at < total; at += kTensor)
    tensors.push_back({fmt::format("variables/layer{}/kernel", at / kTensor),
                       tensor(values, at, std::min(kTensor, total - at))});

  const Folder folder(arguments.folder);
  const std::string path = folder.file("checkpoint.h5"), plain = folder.file("plain");
  const double gigabytes = 1e-9 * static_cast<double>(total);
  fmt::print("{:.3f} GB in {} tensors, GB/s\n{:<46} {:>8} {:>8}\n", gigabytes, tensors.size(), "", "best",
             "median");
  std::vector<Figure> figures;
  const auto add = [&](const char* name, const std::function<void()>& call) {
    figures.push_back(measure(name, gigabytes, arguments.repeats, call));
  };
  add("plain write and fsync", [&] { plain_write(plain, values); });
  add("plain read", [&] { plain_read(plain, back); });
  std::filesystem::remove(plain);
  add("plain HDF5 write and fsync", [&] { hdf5_write(plain, tensors); });
  add("plain HDF5 read", [&] { hdf5_read(plain, tensors.size(), back); });
  std::filesystem::remove(plain);
  add("checkpoint write", [&] { write_checkpoint(path, {.shards = 1}, tensors); });
  add("checkpoint read, checksums verified", [&] {
    const CheckpointFile file(path);
    for (std::size_t i = 0; i < tensors.size(); ++i)
      file.read_into(tensors[i].path, tensor(back, i * kTensor, tensors[i].tensor.size_bytes()));
  });
  LOCKSTEP_CHECK(std::memcmp(values.data(), back.data(), total) == 0,
                 "the data read differ from the data written");
  add("checkpoint verify, digest included", [&] { CheckpointFile(path).verify(); });
  std::filesystem::remove(path);
  measure_background(arguments, gigabytes, folder.path(), tensors, figures);
  return figures;
}

void write_json(const Arguments& arguments, const std::vector<Figure>& figures) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Figure& figure : figures) {
    rows.push_back(
        {{"name", figure.name}, {"best_gb_per_s", figure.best}, {"median_gb_per_s", figure.median}});
    if (figure.blocked) {
      rows.back()["blocked_best_s_per_gb"] = 1 / figure.best;
      rows.back()["blocked_median_s_per_gb"] = 1 / figure.median;
    }
  }
  std::ofstream file(arguments.json);
  file << nlohmann::json{{"processor", processor_name()}, {"megabytes", arguments.megabytes}, {"rows", rows}}
              .dump(2)
       << "\n";
  file.close();
  if (!file) throw Error(ErrorKind::data, "the results could not be written", arguments.json);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Arguments arguments = parse(argc, argv);
    const std::vector<Figure> figures = run(arguments);
    if (!arguments.json.empty()) write_json(arguments, figures);
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "checkpoint_bench: %s\n", error.what());
    return exit_code(error.kind());
  }
}
