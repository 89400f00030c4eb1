// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// How many numbers a thread takes at a time in passes over 16-bit maps, seen by the blocks that a pass has on
// the emulated GPU. What a pass computes is tested elsewhere.
#include "kernels/group_norm.h"
#include "kernels/norm.h"
#include "kernels/spatial.h"
#include "support/cuda_emulation/counts.h"
#include "unit/kernels/stored_testing.h"
#include "unit/kernels_cuda/cuda_testing.h"

namespace lockstep {
namespace {

constexpr std::int64_t kRows = 4096;

/// A map of kRows x channels, `shift` numbers after an aligned address, and what a pass over it needs.
struct Map {
  std::int64_t channels;
  OnDevice<BFloat16> x, y;
  DeviceFloats per_channel;
  Map(std::int64_t c, int shift)
      : channels(c),
        x(kRows * c, shift),
        y(kRows * c, shift),
        per_channel(Values(static_cast<std::size_t>(c), 1.0)) {}
};

template <typename Pass>
std::int64_t blocks_of(const Pass& pass, const Map& map) {
  const CudaLane lane;
  emulation::reset_counts();
  pass(lane, map);
  return emulation::counts().blocks;
}

struct NamedPass {
  const char* name;
  std::function<void(const Lane&, const Map&)> run;
};
std::vector<NamedPass> passes() {
  return {{"normalize",
           [](const Lane& lane, const Map& m) {
             gpu().norm.normalize(lane, kRows, m.channels, m.x.data(), m.per_channel.data(),
                                  m.per_channel.data(), m.per_channel.data(), nullptr, true, m.y.data());
           }},
          {"add_bias",
           [](const Lane& lane, const Map& m) {
             gpu().elementwise.add_bias(lane, kRows, m.channels, m.per_channel.data(), m.y.data(), true);
           }},
          {"dropout",
           [](const Lane& lane, const Map& m) {
             gpu().elementwise.dropout(lane, kRows, m.channels, m.x.data(), 0.5F, 1, 2, 3, 4, m.y.data());
           }},
          {"repeat",
           [](const Lane& lane, const Map& m) {
             gpu().broadcast.repeat(lane, {1, kRows, m.channels}, 1.0F, m.x.data(), m.y.data());
           }},
          {"crop",
           [](const Lane& lane, const Map& m) {
             gpu().spatial.crop(lane, {.n = 1, .inner = {1, 1, kRows}, .channels = m.channels}, m.x.data(),
                                m.y.data());
           }},
          {"copy_rows", [](const Lane& lane, const Map& m) {
             gpu().sequence.copy_rows(lane, kRows, m.channels, m.x.data(), m.channels, m.y.data(),
                                      m.channels);
           }}};
}

/// The rows of a block are as many as its 256 threads cover, so packs of four need a quarter of the blocks.
TEST(CudaPacks, ChannelsThatAreAMultipleOfFourAreReadInFoursAndOfEightInEights) {
  for (const NamedPass& pass : passes())
    for (const std::int64_t channels : {4, 8, 12, 16, 20, 32}) {
      const std::int64_t in_packs = blocks_of(pass.run, Map(channels, 0)),
                         one_by_one = blocks_of(pass.run, Map(channels, 1));
      const bool dropout =
          std::string_view(pass.name) == "dropout";  // one by one, a thread draws four numbers
      const double expected = (channels % 8 == 0 ? 8.0 : 4.0) / (dropout ? 4.0 : 1.0);
      EXPECT_NEAR(static_cast<double>(one_by_one) / static_cast<double>(in_packs), expected, 0.25 * expected)
          << pass.name << ' ' << channels << ": " << one_by_one << " and " << in_packs << " blocks";
    }
}

/// A kernel, and one for the blocks' sums if there are several blocks.
TEST(CudaPacks, LayerNormBackwardIsOnePass) {
  for (const std::int64_t rows : {8, 9, 5000}) {
    const GroupNormShape s{.samples = rows, .width = 64};
    const CudaLane lane(gpu().group_norm.scratch_bytes(s));
    const Values numbers(static_cast<std::size_t>(rows * s.width), 1.0);
    const DeviceFloats x(numbers), dy(numbers), statistics(numbers), dx(rows * s.width), dgamma(s.width),
        dbeta(s.width);
    emulation::reset_counts();
    gpu().group_norm.backward(lane, s, x.data(), dy.data(), nullptr, statistics.data(), dx.data(),
                              dgamma.data(), dbeta.data());
    EXPECT_EQ(emulation::counts().kernels, rows <= 8 ? 1 : 2) << rows;
    (void)dx.host();
  }
}

}  // namespace
}  // namespace lockstep
