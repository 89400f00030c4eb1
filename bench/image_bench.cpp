// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Images per second of the reader `images`, read into memory, compared with libjpeg-turbo alone on the same
// files, in turn. All read each file and decode it to bytes of red, green and blue: libjpeg-turbo over the
// image before it, and into new memory for all images, as the reader must.
//
//   image_bench FOLDER [--threads N] [--rounds N] [--size HEIGHT,WIDTH] [--resize FILTER] [--fit FIT]
//
// FOLDER has JPEG files, in folders or not. Without --size all must have one size. Prints the best round of
// each.
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <jpeglib.h>

#include "config/param_reader.h"
#include "core/buffer.h"
#include "core/device.h"
#include "core/error.h"
#include "core/timer.h"
#include "data/reader_table.h"

namespace {

using namespace lockstep;

struct Times {
  double wall = 1e30, processor = 1e30;
};

/// Of all threads of the process.
double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <typename Work>
void keep_best(Times& best, Work work) {
  const double before = processor_seconds();
  const Timer timer;
  work();
  best.wall = std::min(best.wall, timer.seconds());
  best.processor = std::min(best.processor, processor_seconds() - before);
}

/// Returns the number of pixels.
/// `keep`: pixels of all images, which get new memory; 0: each is written over the one before it.
std::int64_t decode_alone(const std::vector<std::string>& paths, std::int64_t keep) {
  jpeg_error_mgr errors;
  jpeg_decompress_struct info{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&info);
  std::vector<unsigned char> file, pixels;
  std::int64_t count = 0;
  const Buffer all(cpu_device(), static_cast<std::size_t>(3 * keep));
  for (const std::string& path : paths) {
    std::FILE* const in = std::fopen(path.c_str(), "rb");
    if (in == nullptr) throw Error(ErrorKind::data, "cannot be opened", path);
    file.resize(std::filesystem::file_size(path));
    const std::size_t got = std::fread(file.data(), 1, file.size(), in);
    std::fclose(in);
    jpeg_mem_src(&info, file.data(), got);
    jpeg_read_header(&info, TRUE);
    info.out_color_space = JCS_RGB;
    jpeg_start_decompress(&info);
    const std::size_t row = std::size_t{3} * info.output_width;
    unsigned char* to = static_cast<unsigned char*>(all.data()) + 3 * count;
    if (keep == 0) {
      pixels.resize(row * info.output_height);
      to = pixels.data();
    }
    while (info.output_scanline < info.output_height) {
      JSAMPROW line = to + row * info.output_scanline;
      jpeg_read_scanlines(&info, &line, 1);
    }
    count += static_cast<std::int64_t>(info.output_width) * info.output_height;
    jpeg_finish_decompress(&info);
  }
  jpeg_destroy_decompress(&info);
  return count;
}

int run(int argc, char** argv) {
  LOCKSTEP_REQUIRE(argc >= 2 && argc % 2 == 0, ErrorKind::usage, "image_bench FOLDER [--threads N] ...");
  Node node;
  node.kind = Node::Kind::map;
  const auto put = [&](const std::string& name, const std::string& text) {
    node.entries.emplace_back(name, parse_fallback(text));
    node.entry_where.emplace_back("command line");
  };
  const std::string folder = argv[1];
  int rounds = 5;
  std::string threads = "1";
  put("path", folder);
  put("labels", "none");
  put("memory_gb", "1e9");
  for (int i = 2; i < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--rounds") rounds = std::stoi(value);
    if (name == "--threads") threads = value;
    if (name == "--size") put("size", "[" + value + "]");
    if (name == "--resize" || name == "--fit") put(name.substr(2), value);
  }
  put("reader_threads", threads);
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) paths.push_back(entry.path().string());
  const Params params(node, find_reader("images").table, "image_bench");
  Times alone, kept, reader;
  std::int64_t pixels = 0;
  for (int round = 0; round < rounds; ++round) {
    keep_best(alone, [&] { pixels = decode_alone(paths, 0); });
    keep_best(kept, [&] { decode_alone(paths, pixels); });
    keep_best(reader, [&] { open_dataset("images", params, ""); });
  }
  const auto count = static_cast<double>(paths.size());
  std::printf("%zu images, %.0f pixels each on the average\n", paths.size(),
              static_cast<double>(pixels) / count);
  for (const auto& [name, times] : {std::pair{std::string("libjpeg-turbo"), alone},
                                    {"the same, all kept", kept},
                                    {"reader, threads: " + threads, reader}})
    std::printf("%-22s %8.0f images/s  %8.0f per processor second  %7.1f Mpixels per processor second\n",
                name.c_str(), count / times.wall, count / times.processor,
                static_cast<double>(pixels) / times.processor * 1e-6);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}
