// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Speed of the transforms on one core: images per second, with the conversion of bytes to float32. Values are
// the best of several repeats, since other load only slows a measurement down.
//
//   transform_bench [--repeats N]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "config/yaml_node.h"
#include "core/device.h"
#include "core/timer.h"
#include "data/reader_dataset.h"
#include "data/transform_list.h"

namespace {

using namespace lockstep;

constexpr std::int64_t kImages = 512;

ReaderDataset images(std::int64_t size) {
  DatasetParts parts;
  parts.source = "images";
  parts.size = kImages;
  parts.feature_shape = {size, size, 3};
  parts.feature_dtype = DType::u8;
  parts.features = Buffer(cpu_device(), static_cast<std::size_t>(kImages * size * size * 3));
  std::uint32_t state = 1;
  for (std::uint8_t& value : parts.features.as<std::uint8_t>())
    value = static_cast<std::uint8_t>((state = state * 1664525U + 1013904223U) >> 24);
  parts.transform = {1.0F / 255, 0, {0.49F, 0.48F, 0.45F}, {0.25F, 0.24F, 0.26F}};
  return ReaderDataset(std::move(parts));
}

void measure(std::int64_t size, const std::string& items, int repeats) {
  const ReaderDataset data = images(size).with_transforms(
      TransformList(Params(parse_yaml("{transforms: [" + items + "]}", "bench"), transforms_table(), "data")),
      true);
  std::vector<std::int64_t> samples(kImages);
  std::iota(samples.begin(), samples.end(), 0);
  std::vector<float> out(static_cast<std::size_t>(kImages * data.feature_shape().num_elements()));
  std::vector<float> scratch(static_cast<std::size_t>(data.scratch_values()));
  double best = 1e9;
  for (int r = 0; r < repeats; ++r) {
    const Timer timer;
    data.gather_features(samples, {.seed = 1, .epoch = r}, out.data(), scratch.data());
    best = std::min(best, timer.seconds());
  }
  std::printf("  %3lldx%-3lld %-60s %10.0f images/s\n", static_cast<long long>(size),
              static_cast<long long>(size), items.empty() ? "(conversion alone)" : items.c_str(),
              static_cast<double>(kImages) / best);
}

}  // namespace

int main(int argc, char** argv) {
  const int repeats = argc > 2 && std::strcmp(argv[1], "--repeats") == 0 ? std::atoi(argv[2]) : 15;
  for (const char* items :
       {"", "random_crop: {padding: 4}", "random_flip", "random_crop: {padding: 4}, random_flip",
        "random_crop: {padding: 4}, random_flip, cutout: {size: 16}", "random_symmetry", "random_erasing",
        "random_affine: {degrees: [-15, 15]}",
        "color_jitter: {brightness: 0.4, contrast: 0.4, saturation: 0.4}", "color_jitter: {hue: 0.1}",
        "random_noise: {stddev: 0.1}", "random_resized_crop: {size: 32}", "rand_augment"})
    measure(32, items, repeats);
  for (const char* items : {"", "random_resized_crop: {size: 224}, random_flip", "resize: {size: 224}"})
    measure(256, items, std::max(1, repeats / 5));
}
