// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Loss, gradients and moving statistics of a net with batch norm, on any number of ranks, threads and
// microshards, equal those of the whole batch computed at once in double. The bits are those of one rank with
// one thread.
#include <gtest/gtest.h>

#include <cstring>

#include "comm/self_communicator.h"
#include "config/yaml_node.h"
#include "core/hash.h"
#include "core/philox.h"
#include "support/mpi_world.h"
#include "support/one_step.h"
#include "support/reference_net.h"

namespace lockstep {
namespace {

using reference::Net;
using reference::Segment;
using reference::Values;

std::vector<float> random_floats(std::size_t count, std::uint32_t stream, double low, double high) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] =
        static_cast<float>(low + (high - low) * static_cast<double>(philox_uniform(philox_words(
                                                    3, stream, 0, 0, static_cast<std::uint32_t>(i))[0])));
  return values;
}

std::unique_ptr<Graph> net_graph(int group) {
  std::string text = Net::kLayers;
  for (std::size_t at = text.find("GROUP"); at != std::string::npos; at = text.find("GROUP"))
    text.replace(at, 5, std::to_string(group));
  return std::make_unique<Graph>(
      graph_from_config(parse_yaml(text, "net"), Shape{Net::kSide, Net::kSide, Net::kIn}));
}

struct Case {
  std::vector<std::int64_t> sizes;
  int group;
};
/// Equal, unequal and empty microshards; ranks without samples; groups without samples.
const std::vector<Case> kCases = {
    {{3, 3, 3, 3}, 0},
    {{5, 0, 2, 1}, 0},
    {{3, 1, 4, 2}, 2},
    {{3, 2, 0, 0}, 2},
    {{4, 1, 3, 0, 2}, 0},
    {{0, 1, 5, 0, 2}, 1},
    {{2, 2, 2, 2, 2, 2, 2, 2}, 0},
    {{1, 4, 2, 0, 3, 1, 0, 2}, 0},
    {{0, 0, 0, 2, 1, 3, 4, 2}, 0},
    {{1, 4, 2, 0, 3, 1, 0, 2}, 4},
};

/// Values far from the initial ones, the same on every rank.
void perturb(VariableStore& variables) {
  for (std::size_t v = 0; v < variables.variables().size(); ++v) {
    const Variable& variable = variables.variables()[v];
    if (!variable.trainable) continue;
    const bool kernel = variable.name.ends_with("kernel");
    const auto values =
        random_floats(static_cast<std::size_t>(variable.shape.num_elements()),
                      static_cast<std::uint32_t>(50 + v), kernel ? -0.5 : 0.25, kernel ? 0.5 : 1.25);
    std::copy(values.begin(), values.end(), variables.value(static_cast<VariableId>(v)));
  }
}

struct Batch {
  std::int64_t n = 0;
  std::vector<float> features;
  std::vector<std::int32_t> labels;
};
Batch batch_of(const Case& test) {
  Batch batch;
  for (std::int64_t n : test.sizes) batch.n += n;
  batch.features = random_floats(
      static_cast<std::size_t>(batch.n * 72),
      static_cast<std::uint32_t>(20 * test.sizes.size() + static_cast<std::size_t>(test.group) + 1), -1, 3);
  for (std::int64_t i = 0; i < batch.n; ++i) batch.labels.push_back(static_cast<std::int32_t>(i * i % 3));
  return batch;
}

std::vector<Segment> segments_of(const Case& test) {
  const std::size_t group = test.group == 0 ? test.sizes.size() : static_cast<std::size_t>(test.group);
  std::vector<Segment> segments;
  std::int64_t first = 0;
  for (std::size_t s = 0; s < test.sizes.size(); s += group) {
    Segment segment{first, 0};
    for (std::size_t i = s; i < s + group; ++i) segment.count += test.sizes[i];
    first += segment.count;
    if (segment.count > 0) segments.push_back(segment);
  }
  return segments;
}

void expect_close(std::span<const float> actual, const Values& expected, double relative,
                  const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double largest = 0;
  for (double value : expected) largest = std::max(largest, std::abs(value));
  EXPECT_GT(largest, 0) << what << " is zero everywhere, so nothing is compared";
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_LE(std::abs(static_cast<double>(actual[i]) - expected[i]), relative * largest)
        << what << ", element " << i;
}

void expect_whole_batch(const Case& test, int threads) {
  OneStep step(test_world(), threads, net_graph(test.group), make_loss(Node::scalar("softmax_cross_entropy")),
               test.sizes);
  perturb(step.variables());
  const Batch batch = batch_of(test);
  Net net;
  for (std::size_t v = 0; v < step.variables().variables().size(); ++v) {
    const Variable& variable = step.variables().variables()[v];
    const float* values = step.variables().value(static_cast<VariableId>(v));
    net.variables[variable.name] = Values(values, values + variable.shape.num_elements());
  }
  net.run(batch.n, Values(batch.features.begin(), batch.features.end()), batch.labels, segments_of(test));
  ASSERT_GT(net.nearest_kink, 1e-5) << "a rounding error decides a relu: choose other numbers";

  const OneStep::Result result = step.run(batch.features, batch.labels);
  // The longest sums have n * 36 terms. Their rounding errors are independent and pass through three layers
  // of such sums, so the tolerance is 8 sqrt(length) units in the last place of the largest element.
  const double relative = 8 * std::sqrt(static_cast<double>(batch.n * 36)) * 0x1p-24;
  EXPECT_LE(std::abs(result.loss - net.loss), relative * net.loss);
  EXPECT_NEAR(result.accuracy, net.accuracy, 1e-12);
  std::int64_t compared = 0;
  for (std::size_t v = 0; v < step.variables().variables().size(); ++v) {
    const Variable& variable = step.variables().variables()[v];
    const auto elements = static_cast<std::size_t>(variable.shape.num_elements());
    if (variable.trainable) {
      const std::string name = variable.name;
      if (name == "conv2/bias") {  // a constant before a batch norm has no effect: only rounding remains
        for (std::size_t c = 0; c < elements; ++c)
          EXPECT_LE(
              std::abs(static_cast<double>(result.gradient[static_cast<std::size_t>(variable.offset) + c])),
              relative)
              << name;
        ++compared;
        continue;
      }
      expect_close({result.gradient.data() + variable.offset, elements}, net.gradients.at(name), relative,
                   name);
      ++compared;
      continue;
    }
    const reference::Moments& moments = net.statistics.at(variable.name.substr(0, 3));
    Values expected(elements);
    for (std::size_t c = 0; c < elements; ++c)
      expected[c] = variable.name.ends_with("mean")
                        ? 0.1 * moments.mean[c]
                        : 0.9 + 0.1 * moments.m2[c] / static_cast<double>(batch.n * 36 - 1);
    expect_close({step.variables().value(static_cast<VariableId>(v)), elements}, expected, relative,
                 variable.name);
    ++compared;
  }
  EXPECT_EQ(compared, 13);
}

TEST(WholeBatch, LossGradientsAndStatistics) {
  for (const Case& test : kCases)
    for (const int threads : {1, 2}) {
      SCOPED_TRACE(fmt::format("{} shards, group {}, {} threads, first sizes {} {}", test.sizes.size(),
                               test.group, threads, test.sizes[0], test.sizes[1]));
      expect_whole_batch(test, threads);
    }
}

/// Without synchronisation points: the rank's last backward pass is divided where gradient buckets end.
std::unique_ptr<Graph> plain_graph() {
  constexpr const char* kLayers = R"(
- conv2d: {filters: 4, kernel: 3}
- relu
- conv2d: {filters: 6, kernel: 3, stride: 2}
- relu
- flatten
- dropout: {rate: 0.25}
- dense: {units: 12}
- relu
- dense: {units: 3}
)";
  return std::make_unique<Graph>(
      graph_from_config(parse_yaml(kLayers, "net"), Shape{Net::kSide, Net::kSide, Net::kIn}));
}

struct Bits {
  std::uint64_t gradient, variables;
  double loss;
};
Bits bits_of(Communicator& world, int threads, const Case& test, bool plain, bool overlap) {
  OneStep step(world, threads, plain ? plain_graph() : net_graph(test.group),
               make_loss(Node::scalar("softmax_cross_entropy")), test.sizes, overlap);
  perturb(step.variables());
  const Batch batch = batch_of(test);
  const OneStep::Result result = step.run(batch.features, batch.labels);
  return {hash64(result.gradient.data(), result.gradient.size() * sizeof(float)), step.variables().hash(),
          result.loss};
}

void expect_same_bits(bool plain) {
  SelfCommunicator self;
  for (const Case& test : kCases) {
    const Bits expected = bits_of(self, 1, test, plain, false);
    for (const int threads : {1, 2, 3})
      for (const bool overlap : {false, true}) {
        const Bits bits = bits_of(test_world(), threads, test, plain, overlap);
        EXPECT_EQ(bits.gradient, expected.gradient)
            << test.sizes.size() << " shards, " << threads << " threads";
        EXPECT_EQ(bits.variables, expected.variables)
            << test.sizes.size() << " shards, " << threads << " threads";
        EXPECT_EQ(bits.loss, expected.loss) << test.sizes.size() << " shards, " << threads << " threads";
      }
  }
}

TEST(SameBits, AsOneRankWithBatchNorm) { expect_same_bits(false); }
TEST(SameBits, AsOneRankWithoutSynchronisation) { expect_same_bits(true); }

}  // namespace
}  // namespace lockstep
