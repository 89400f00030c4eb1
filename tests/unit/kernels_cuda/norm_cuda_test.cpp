// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/norm.h"

#include "core/planned_merges.h"
#include "kernels/backend.h"
#include "kernels/backend_cuda.h"
#include "unit/kernels_cuda/cuda_testing.h"

namespace lockstep {
namespace {

class CudaNorm : public GpuTest {};

constexpr double kEpsilon = 1e-3;
/// The longest float32 sum has kBlockRows (64) terms, each of values that were rounded a few times.
constexpr double kSumError = (64 + 6) * kRounding;

Values part(const Values& values, std::int64_t first, std::int64_t count) {
  return {values.begin() + first, values.begin() + first + count};
}

TEST_F(CudaNorm, MomentsMatchTwoPassesInDouble) {
  for (Size size : kSizes) {
    const Values x = random_values(size.rows * size.channels, 1, -2.0, 3.0);
    const auto expected = reference::moments(size.rows, size.channels, x);
    Values first;
    for (int shift : {0, 0, 1}) {
      const CudaLane lane;
      const DeviceFloats data(x, shift);
      const DeviceDoubles leaf(1 + 2 * size.channels);
      gpu().norm.moments(lane, size.rows, size.channels, data.data(), leaf.data());
      const Values actual = leaf.host();
      EXPECT_EQ(actual[0], static_cast<double>(size.rows));
      expect_close(part(actual, 1, size.channels), expected.mean, Values(expected.mean.size(), 3.0),
                   kSumError, 0.0, "mean " + describe(size));
      expect_close(part(actual, 1 + size.channels, size.channels), expected.m2, expected.m2, 2 * kSumError,
                   9.0 * kSumError * kSumError, "m2 " + describe(size));
      if (first.empty()) first = actual;
      expect_same(actual, first, "again at another address, " + describe(size));
    }
  }
}

TEST_F(CudaNorm, MomentsSurviveALargeMeanAndKeepNan) {
  for (std::int64_t channels : {1, 16, 70}) {
    const std::int64_t rows = 5000;
    Values x = random_values(rows * channels, 2, 4095.0, 4097.0);
    const auto expected = reference::moments(rows, channels, x);
    const CudaLane lane;
    const DeviceDoubles leaf(1 + 2 * channels);
    {
      const DeviceFloats data(x);
      gpu().norm.moments(lane, rows, channels, data.data(), leaf.data());
      const Values actual = leaf.host();
      // The numbers that are added differ by at most 2, so the errors are those without a mean.
      expect_close(part(actual, 1, channels), expected.mean, Values(expected.mean.size(), 2.0),
                   20 * kRounding, 0.0, "mean");
      expect_close(part(actual, 1 + channels, channels), expected.m2, expected.m2, 40 * kRounding, 0.0, "m2");
    }
    x[static_cast<std::size_t>(channels * 700)] = std::nan("");
    const DeviceFloats data(x);
    gpu().norm.moments(lane, rows, channels, data.data(), leaf.data());
    const Values actual = leaf.host();
    for (std::int64_t c = 0; c < channels; ++c) {
      EXPECT_EQ(std::isnan(actual[static_cast<std::size_t>(1 + c)]), c == 0);
      EXPECT_EQ(std::isnan(actual[static_cast<std::size_t>(1 + channels + c)]), c == 0);
    }
  }
}

/// Rows of one level, then rows of another, and a first row that is unlike all others: numbers on which a run
/// of rows is centred that are far from its mean.
TEST_F(CudaNorm, MomentsOfLevelsThatJump) {
  const std::int64_t rows = 9000, channels = 16;
  for (const std::int64_t jump : {1, 8, 100, 4500, 8999}) {
    Values x = random_values(rows * channels, 2, -1.0, 1.0);
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = static_cast<float>(x[i] + (static_cast<std::int64_t>(i) < jump * channels ? 0.0 : 4096.0));
    const auto expected = reference::moments(rows, channels, x);
    const CudaLane lane;
    const DeviceFloats data(x);
    const DeviceDoubles leaf(1 + 2 * channels);
    gpu().norm.moments(lane, rows, channels, data.data(), leaf.data());
    const Values actual = leaf.host();
    const std::string what = fmt::format("jump after {}", jump);
    Values deviation;
    for (const double m2 : expected.m2) deviation.push_back(std::sqrt(m2 / static_cast<double>(rows)));
    expect_close(part(actual, 1, channels), expected.mean, deviation, 20 * kRounding,
                 4096 * kRounding * kRounding, "mean, " + what);
    expect_close(part(actual, 1 + channels, channels), expected.m2, expected.m2, 40 * kRounding, 0.0,
                 "m2, " + what);
  }
}

/// Arrays of NormKernels::Coefficients, and a, b, d, on one device.
struct DeviceNumbers {
  explicit DeviceNumbers(std::int64_t c)
      : mean(c), inverse_std(c), scale(c), shift(c), a(c), b(c), d(c), rest(c), precise(c), count(1) {}
  NormKernels::Coefficients pointers() const {
    return {mean.data(), inverse_std.data(), scale.data(), shift.data(),
            rest.data(), precise.data(),     count.data()};
  }
  DeviceFloats mean, inverse_std, scale, shift, a, b, d;
  DeviceDoubles rest, precise, count;
};

/// The trees over `partials` partials at multiples of `stride`, in groups of `group`.
PlannedMerges trees(Device& device, int partials, int group, std::int64_t stride) {
  PlannedMerges plan;
  for (int i = 0; i < partials; ++i) plan.add_input(i * stride);
  for (int first = 0, g = 0; first < partials; first += group, ++g) {
    const int last = std::min(first + group, partials);
    for (int step = 1; step < last - first; step *= 2)
      for (int into = first; into + step < last; into += 2 * step) plan.add_step(into, into + step);
    plan.add_output(first, g * stride);
  }
  plan.load(device);
  return plan;
}

TEST_F(CudaNorm, MergesAlongTreesHaveTheBitsOfTheCpu) {
  const NormKernels &cpu = cpu_kernels().norm, &kernels = gpu().norm;
  for (const auto& [partials, group] :
       {std::pair(1, 1), {2, 2}, {7, 7}, {12, 3}, {33, 33}, {1000, 1000}, {7000, 7000}})
    for (std::int64_t channels : {1, 3, 32, 70}) {
      if (partials > 1000 && channels > 1) continue;
      const CudaLane lane;
      const std::int64_t width = 1 + 2 * channels;
      Values leaves = random_values(partials * width, 3, 0.1, 2.0);
      for (double& value : leaves) value /= 3;
      for (int i = 0; i < partials; ++i) leaves[static_cast<std::size_t>(i * width)] = i * 5 % 4;  // also 0
      const DeviceDoubles dleaves(leaves), dsums(leaves);
      const DeviceDoubles dtotals(Values(leaves.size(), -1.0)), dsum_totals(Values(leaves.size(), -1.0));
      Values sums = leaves, totals(leaves.size(), -1.0), sum_totals = totals;
      const PlannedMerges on_host = trees(cpu_device(), partials, group, width),
                          on_gpu = trees(cuda_backend().open(0), partials, group, width);
      cpu.merge_moments(TestLane(), channels, on_host.tree(), leaves.data(), totals.data());
      kernels.merge_moments(lane, channels, on_gpu.tree(), dleaves.data(), dtotals.data());
      expect_same(dtotals.host(), totals, "moments");
      cpu.merge_sums(TestLane(), width, on_host.tree(), sums.data(), sum_totals.data());
      kernels.merge_sums(lane, width, on_gpu.tree(), dsums.data(), dsum_totals.data());
      expect_same(dsum_totals.host(), sum_totals, "sums");
    }
}

TEST_F(CudaNorm, PerChannelResultsHaveTheBitsOfTheCpu) {
  const NormKernels &cpu = cpu_kernels().norm, &kernels = gpu().norm;
  for (std::int64_t channels : {1, 3, 17, 300})
    for (double count : {0.0, 1.0, 42.0})
      for (bool learned : {false, true}) {
        const CudaLane lane;
        const std::int64_t width = 1 + 2 * channels;
        Values total = random_values(width, 3, 0.1, 2.0);
        for (double& value : total) value /= 3;  // not exact in float32
        total[0] = count;
        const Values sums = random_values(2 * channels, 5);
        const Floats gamma(random_values(channels, 6)), beta(random_values(channels, 7)),
            mean(random_values(channels, 8)), variance(random_values(channels, 9, 0.1, 2.0));
        const DeviceFloats dgamma(gamma.values()), dbeta(beta.values()), dmean(mean.values()),
            dvariance(variance.values());
        const DeviceDoubles dtotal(total), dsums(sums);

        Floats c[7] = {Floats(channels), Floats(channels), Floats(channels), Floats(channels),
                       Floats(channels), Floats(channels), Floats(channels)};
        Values rest(static_cast<std::size_t>(channels)), precise = rest;
        double cpu_count = 0.0;
        const NormKernels::Coefficients out{c[0].data(), c[1].data(),    c[2].data(), c[3].data(),
                                            rest.data(), precise.data(), &cpu_count};
        const DeviceNumbers numbers(channels);
        const auto compare = [&](const char* what) {
          const DeviceFloats* device[] = {&numbers.mean, &numbers.inverse_std, &numbers.scale, &numbers.shift,
                                          &numbers.a,    &numbers.b,           &numbers.d};
          for (int i = 0; i < 7; ++i) expect_same(device[i]->host(), host_of(c[i]), what);
          expect_same(numbers.rest.host(), rest, what);
          expect_same(numbers.precise.host(), precise, what);
        };
        const float* g = learned ? gamma.data() : nullptr;
        const float* b = learned ? beta.data() : nullptr;
        const float* dg = learned ? dgamma.data() : nullptr;
        const float* db = learned ? dbeta.data() : nullptr;

        cpu.coefficients(TestLane(), channels, total.data(), kEpsilon, g, b, out);
        cpu.gradient_coefficients(TestLane(), channels, sums.data(), g, out, c[4].data(), c[5].data(),
                                  c[6].data());
        kernels.coefficients(lane, channels, dtotal.data(), kEpsilon, dg, db, numbers.pointers());
        kernels.gradient_coefficients(lane, channels, dsums.data(), dg, numbers.pointers(), numbers.a.data(),
                                      numbers.b.data(), numbers.d.data());
        compare("coefficients");
        EXPECT_EQ(numbers.count.host()[0], cpu_count);

        cpu.moving_average(TestLane(), channels, total.data(), 0.9, mean.data(), variance.data());
        kernels.moving_average(lane, channels, dtotal.data(), 0.9, dmean.data(), dvariance.data());
        expect_same(dmean.host(), host_of(mean), "moving mean");
        expect_same(dvariance.host(), host_of(variance), "moving variance");

        cpu.inference_coefficients(TestLane(), channels, mean.data(), variance.data(), kEpsilon, g, b, out);
        kernels.inference_coefficients(lane, channels, dmean.data(), dvariance.data(), kEpsilon, dg, db,
                                       numbers.pointers());
        compare("inference coefficients");

        Floats rounded(width);
        const DeviceFloats drounded(width);
        cpu.to_float(TestLane(), width, total.data(), rounded.data());
        kernels.to_float(lane, width, dtotal.data(), drounded.data());
        expect_same(drounded.host(), host_of(rounded), "to float");
      }
}

TEST_F(CudaNorm, NormalizeHasTheBitsOfTheCpu) {
  for (Size size : kSizes)
    for (bool relu : {false, true})
      for (bool add : {false, true})
        for (int shift : {0, 1}) {
          const std::int64_t count = size.rows * size.channels;
          Values x = random_values(count, 10);
          if (count > 20) x[17] = std::nan("");
          const Floats cx(x), r(random_values(count, 11)), a(random_values(size.channels, 12)),
              b(random_values(size.channels, 13)), m(random_values(size.channels, 14));
          const bool plain = !relu && !add;  // without mean and scale
          Floats expected(count);
          const DeviceFloats dx(x, shift), dr(r.values(), shift), da(a.values(), shift),
              db(b.values(), shift), dm(m.values(), shift);
          const CudaLane lane;
          cpu_kernels().norm.normalize(TestLane(), size.rows, size.channels, cx.data(),
                                       plain ? nullptr : m.data(), plain ? nullptr : a.data(), b.data(),
                                       add ? r.data() : nullptr, relu, expected.data());
          gpu().norm.normalize(lane, size.rows, size.channels, dx.data(), plain ? nullptr : dm.data(),
                               plain ? nullptr : da.data(), db.data(), add ? dr.data() : nullptr, relu,
                               dx.data());  // in place
          expect_same(dx.host(), host_of(expected), describe(size));
        }
}

struct Case {
  bool second, write, relu, mask_from_x;
};

void check_backward(Size size, Case option, int shift) {
  const std::string what = fmt::format("{} dy2 {} g_out {} relu {} from x {}", describe(size), option.second,
                                       option.write, option.relu, option.mask_from_x);
  const std::int64_t count = size.rows * size.channels;
  const std::size_t width = static_cast<std::size_t>(size.channels);
  const Floats x(random_values(count, 21, -1.0, 2.0)), dy(random_values(count, 22)),
      dy2(random_values(count, 23)), y(random_values(count, 24));
  const Floats mean(random_values(size.channels, 25)), inverse(random_values(size.channels, 26, 0.5, 2.0)),
      scale(random_values(size.channels, 27)), offset(random_values(size.channels, 28)),
      a(random_values(size.channels, 29)), b(random_values(size.channels, 30)),
      d(random_values(size.channels, 31));
  const Values rest = random_values(size.channels, 32, -0.1, 0.1);
  const DeviceDoubles grest(rest);
  const DeviceFloats gx(x.values(), shift), gdy(dy.values(), shift), gdy2(dy2.values(), shift),
      gy(y.values(), shift), gmean(mean.values()), ginverse(inverse.values()), gscale(scale.values()),
      goffset(offset.values()), ga(a.values()), gb(b.values()), gd(d.values());
  const auto gradient_of = [&](auto& xs, auto& dys, auto& dy2s, auto& ys, auto& means, auto& inverses,
                               auto& scales, auto& offsets, const double* rests) {
    return NormKernels::Gradient{.dy = dys.data(),
                                 .dy2 = option.second ? dy2s.data() : nullptr,
                                 .y = option.relu && !option.mask_from_x ? ys.data() : nullptr,
                                 .mask_from_x = option.mask_from_x,
                                 .x = xs.data(),
                                 .scale = scales.data(),
                                 .shift = offsets.data(),
                                 .mean = means.data(),
                                 .mean_rest = rests,
                                 .inverse_std = inverses.data()};
  };
  const NormKernels::Gradient host = gradient_of(x, dy, dy2, y, mean, inverse, scale, offset, rest.data());
  const NormKernels::Gradient device =
      gradient_of(gx, gdy, gdy2, gy, gmean, ginverse, gscale, goffset, grest.data());

  // The masked gradient and dx have the CPU's bits; the sums are compared in double.
  Values sum_g(width), sum_gx(width);
  Floats g(count), dx(count);
  cpu_kernels().norm.backward_sums(TestLane(), size.rows, size.channels, host, g.data(), sum_g.data(),
                                   sum_gx.data());
  cpu_kernels().norm.backward_apply(TestLane(), size.rows, size.channels, host, a.data(), b.data(), d.data(),
                                    dx.data());
  Values expected_g(width), expected_gx(width), magnitude_g(width), magnitude_gx(width);
  for (std::size_t i = 0; i < g.size(); ++i) {
    const std::size_t c = i % width;
    const double term = static_cast<double>(g[i]),
                 normal = (static_cast<double>(x[i]) - static_cast<double>(mean[c]) - rest[c]) *
                          static_cast<double>(inverse[c]);
    expected_g[c] += term;
    expected_gx[c] += term * normal;
    magnitude_g[c] += std::abs(term);
    magnitude_gx[c] += std::abs(term) * (std::abs(normal) + std::abs(rest[c]) * 2);
  }
  const CudaLane lane;
  const DeviceFloats device_g(count, shift), device_dx(count, shift);
  const DeviceDoubles device_sum_g(size.channels), device_sum_gx(size.channels);
  for (int again = 0; again < 2; ++again) {
    gpu().norm.backward_sums(lane, size.rows, size.channels, device, option.write ? device_g.data() : nullptr,
                             device_sum_g.data(), device_sum_gx.data());
    expect_close(device_sum_g.host(), expected_g, magnitude_g, kSumError, 0.0, "sum g " + what);
    expect_close(device_sum_gx.host(), expected_gx, magnitude_gx, kSumError, 0.0, "sum gx " + what);
    if (again == 0) {
      sum_g = device_sum_g.host();
      sum_gx = device_sum_gx.host();
    }
    expect_same(device_sum_g.host(), sum_g, "again, sum g " + what);
    expect_same(device_sum_gx.host(), sum_gx, "again, sum gx " + what);
  }
  if (option.write) expect_same(device_g.host(), host_of(g), "g " + what);
  gpu().norm.backward_apply(lane, size.rows, size.channels, device, ga.data(), gb.data(), gd.data(),
                            gdy.data());
  expect_same(gdy.host(), host_of(dx), "dx over dy, " + what);
}

TEST_F(CudaNorm, BackwardWithEveryOption) {
  for (Size size : kSizes)
    for (bool second : {false, true})
      for (bool write : {false, true})
        for (int shift : {0, 1}) {
          check_backward(size, {second, write, false, false}, shift);
          check_backward(size, {second, write, true, false}, shift);
          check_backward(size, {second, write, true, true}, shift);
        }
}

}  // namespace
}  // namespace lockstep
