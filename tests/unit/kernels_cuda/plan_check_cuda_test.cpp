// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The check of plans, with plans that the host computes by plain loops: right ones, and ones with a defect.
#include "kernels/plan_check_cuda.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "core/half.h"
#include "cuda_testing.h"
#include "kernels/not_supported.h"
#include "support/cuda_libraries/unevenly_padded.h"

namespace lockstep {
namespace {

using cuda::PlanSpec;
using cuda::ProductShape;
using Pass = PlanSpec::Pass;

/// Numbers in device memory, as the plan finds and leaves them.
struct Operand {
  void* address;
  std::int64_t count;
  DType type;
  std::vector<double> numbers;

  void read() {
    numbers.resize(static_cast<std::size_t>(count));
    with_type(type, [&]<typename T>(T) {
      std::vector<T> raw(numbers.size());
      cuda::check(cudaMemcpy(raw.data(), address, raw.size() * sizeof(T), cudaMemcpyDeviceToHost), "copy");
      std::ranges::transform(raw, numbers.begin(),
                             [](T value) { return static_cast<double>(to_float(value)); });
    });
  }
  /// Adds `past_end` numbers after the last one.
  void write(std::int64_t past_end) const {
    with_type(type, [&]<typename T>(T) {
      std::vector<T> raw;
      for (const double value : numbers) raw.push_back(from_float<T>(static_cast<float>(value)));
      raw.insert(raw.end(), static_cast<std::size_t>(past_end), from_float<T>(1.0F));
      cuda::check(cudaMemcpy(address, raw.data(), raw.size() * sizeof(T), cudaMemcpyHostToDevice), "copy");
      cuda::check(cudaDeviceSynchronize(), "copies");
    });
  }
};

/// A result on its way to the device. Its numbers hold what was there before where they are not assigned.
struct Result {
  std::vector<double>& numbers;
  const std::vector<double>& before;
  std::int64_t width, channels;  ///< of the innermost axis of space, and below it
  std::int64_t past_end = 0;     ///< how many numbers too many are written
};
using Damage = std::function<void(Result&)>;
const Damage kNone = [](Result&) {};
/// Calls f for the numbers of the last column.
template <typename F>
void in_last_column(Result& r, const F& f) {
  for (std::size_t i = 0; i < r.numbers.size(); ++i)
    if (static_cast<std::int64_t>(i) / r.channels % r.width == r.width - 1) f(i);
}
const Damage kWrongColumn = [](Result& r) { in_last_column(r, [&](std::size_t i) { r.numbers[i] += 1; }); };
const Damage kUnwrittenColumn = [](Result& r) {
  in_last_column(r, [&](std::size_t i) { r.numbers[i] = r.before[i]; });
};
const Damage kOneUnwritten = [](Result& r) {
  const std::size_t middle = r.numbers.size() / 2;
  r.numbers[middle] = r.before[middle];
};
const Damage kAdded = [](Result& r) {
  for (std::size_t i = 0; i < r.numbers.size(); ++i) r.numbers[i] += r.before[i];
};
const Damage kReversed = [](Result& r) { std::ranges::reverse(r.numbers); };
const Damage kTooLong = [](Result& r) { r.past_end = 1; };

/// The largest whole number up to which all are exact.
double exact_up_to(DType type) { return type == DType::bf16 ? 256 : type == DType::f16 ? 2048 : 1 << 24; }

/// Which terms of the sums are there: sample, output position, kernel position and channel of the group.
using Has = std::function<bool(std::int64_t n, std::int64_t out, std::int64_t k, std::int64_t c)>;
const Has kAll = [](auto...) { return true; };

std::int64_t positions(const PlanSpec::Axes& axes) { return axes[0] * axes[1] * axes[2]; }

/// error_of_plan() of a convolution by plain loops.
cuda::PlanError whole_error_of(const PlanSpec& s, const Damage& damage = kNone, const Has& has = kAll) {
  constexpr std::size_t kWorkspace = 1000;
  const auto run = [&](cudaStream_t stream, const void* x, const void* kernel, const void* y,
                       void* workspace) {
    cuda::check(cudaStreamSynchronize(stream), "operands");
    EXPECT_EQ(cudaMemset(workspace, 0xFF, kWorkspace), cudaSuccess);
    const std::int64_t group_in = s.in_c / s.groups, group_out = s.out_c / s.groups;
    Operand all[] = {{const_cast<void*>(x), s.n * positions(s.in) * s.in_c, s.type, {}},
                     {const_cast<void*>(kernel), s.out_c * positions(s.kernel) * group_in, s.type, {}},
                     {const_cast<void*>(y), s.n * positions(s.out) * s.out_c, s.type, {}}};
    for (Operand& operand : all) operand.read();
    const int written = s.pass == Pass::forward ? 2 : s.pass == Pass::backward_data ? 0 : 1;
    const std::vector<double> before = all[written].numbers;
    std::vector<double> sums(before.size()), sizes(before.size());
    for (std::int64_t n = 0; n < s.n; ++n)
      for (std::int64_t out = 0; out < positions(s.out); ++out)
        for (std::int64_t k = 0; k < positions(s.kernel); ++k) {
          const PlanSpec::Axes to{out / (s.out[1] * s.out[2]), out / s.out[2] % s.out[1], out % s.out[2]},
              window{k / (s.kernel[1] * s.kernel[2]), k / s.kernel[2] % s.kernel[1], k % s.kernel[2]};
          std::int64_t from = n;
          bool inside = true;
          for (std::size_t axis = 0; axis < 3; ++axis) {
            const std::int64_t at =
                to[axis] * s.stride[axis] - s.padding[axis] + window[axis] * s.dilation[axis];
            inside = inside && at >= 0 && at < s.in[axis];
            from = from * s.in[axis] + at;
          }
          if (!inside) continue;
          for (std::int64_t o = 0; o < s.out_c; ++o)
            for (std::int64_t c = 0; c < group_in; ++c) {
              if (!has(n, out, k, s.pass == Pass::backward_data ? o % group_out : c)) continue;
              const std::size_t at[] = {
                  static_cast<std::size_t>(from * s.in_c + o / group_out * group_in + c),
                  static_cast<std::size_t>((o * positions(s.kernel) + k) * group_in + c),
                  static_cast<std::size_t>((n * positions(s.out) + out) * s.out_c + o)};
              double product = 1;
              for (int i = 0; i < 3; ++i)
                if (i != written) product *= all[i].numbers[at[i]];
              sums[at[written]] += product;
              sizes[at[written]] += std::abs(product);
            }
        }
    EXPECT_LE(*std::ranges::max_element(sizes), exact_up_to(s.type)) << s.describe();
    Result result{sums, before,
                  written == 0   ? s.in[2]
                  : written == 1 ? s.kernel[2]
                                 : s.out[2],
                  written == 0   ? s.in_c
                  : written == 1 ? group_in
                                 : s.out_c};
    damage(result);
    all[written].numbers = sums;
    all[written].write(result.past_end);
  };
  return cuda::error_of_plan(s, kWorkspace, run);
}
std::string error_of(const PlanSpec& s, const Damage& damage = kNone, const Has& has = kAll) {
  return whole_error_of(s, damage, has).text;
}

/// error_of_plan() of a product by plain loops, over the first `inner` of the inner dimension.
std::string error_of(const ProductShape& s, const Damage& damage = kNone, std::int64_t inner = -1,
                     std::int64_t bias_shift = 0) {
  const auto run = [&](cudaStream_t stream, const void* a, const void* b, const void* bias, void* d, void*) {
    cuda::check(cudaStreamSynchronize(stream), "operands");
    EXPECT_EQ(bias != nullptr, s.bias);
    for (const void* matrix : {a, b}) EXPECT_EQ(reinterpret_cast<std::uintptr_t>(matrix) % s.alignment, 0U);
    Operand from_a{const_cast<void*>(a), s.m * s.k, s.from, {}},
        from_b{const_cast<void*>(b), s.n * s.k, s.from, {}}, added{const_cast<void*>(bias), s.m, s.to, {}},
        to{d, s.m * s.n, s.to, {}};
    from_a.read(), from_b.read(), to.read();
    if (s.bias) added.read();
    const std::vector<double> before = to.numbers;
    for (std::int64_t j = 0; j < s.n; ++j)
      for (std::int64_t i = 0; i < s.m; ++i) {
        double sum = s.bias ? added.numbers[static_cast<std::size_t>((i + bias_shift) % s.m)] : 0, size = 1;
        for (std::int64_t l = 0; l < (inner < 0 ? s.k : inner); ++l) {
          const double product =
              from_a.numbers[static_cast<std::size_t>(s.transposed_a ? l + i * s.k : i + l * s.m)] *
              from_b.numbers[static_cast<std::size_t>(s.transposed_b ? j + l * s.n : l + j * s.k)];
          sum += product;
          size += std::abs(product);
        }
        EXPECT_LE(size, exact_up_to(s.to)) << s.describe();
        to.numbers[static_cast<std::size_t>(i + j * s.m)] = sum;
      }
    Result result{to.numbers, before, s.n, s.m};
    damage(result);
    to.write(result.past_end);
  };
  return cuda::error_of_plan(s, 0, run).text;
}

class PlanCheck : public GpuTest {};

/// Padding that differs along one axis, along both, groups, strides, dilation, volumes, large sums, and sizes
/// of one.
std::vector<PlanSpec> specs() {
  using Axes = PlanSpec::Axes;
  std::vector<PlanSpec> all{{.n = 3,
                             .in_c = 8,
                             .out_c = 6,
                             .in = Axes{1, 5, 6},
                             .out = Axes{1, 3, 3},
                             .kernel = Axes{1, 3, 3},
                             .padding = Axes{0, 1, 0},
                             .padding_after = Axes{0, 1, 1},
                             .stride = Axes{1, 2, 2}},
                            {.n = 2,
                             .in_c = 4,
                             .out_c = 9,
                             .in = Axes{1, 8, 8},
                             .out = Axes{1, 4, 4},
                             .kernel = Axes{1, 3, 3},
                             .padding_after = Axes{0, 1, 1},
                             .stride = Axes{1, 2, 2}},
                            {.n = 2,
                             .in_c = 12,
                             .out_c = 8,
                             .groups = 4,
                             .in = Axes{1, 7, 9},
                             .out = Axes{1, 7, 9},
                             .kernel = Axes{1, 3, 3},
                             .padding = Axes{0, 2, 2},
                             .padding_after = Axes{0, 2, 2},
                             .dilation = Axes{1, 2, 2}},
                            {.spatial_axes = 3,
                             .n = 2,
                             .in_c = 3,
                             .out_c = 5,
                             .in = Axes{4, 6, 5},
                             .out = Axes{4, 6, 5},
                             .kernel = Axes{2, 3, 3},
                             .padding = Axes{0, 1, 1},
                             .padding_after = Axes{1, 1, 1}},
                            {.n = 2, .in_c = 300, .out_c = 40, .in = Axes{1, 3, 4}, .out = Axes{1, 3, 4}},
                            {.n = 40,
                             .in_c = 2,
                             .out_c = 3,
                             .in = Axes{1, 12, 12},
                             .out = Axes{1, 12, 12},
                             .kernel = Axes{1, 3, 3},
                             .padding = Axes{0, 1, 1},
                             .padding_after = Axes{0, 1, 1}},
                            {.n = 1, .in_c = 1, .out_c = 1}};
  std::vector<PlanSpec> of_all;
  for (const PlanSpec& spec : all)
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights})
      for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
        of_all.push_back(spec);
        of_all.back().pass = pass, of_all.back().type = type;
      }
  return of_all;
}

TEST_F(PlanCheck, AcceptsConvolutionsThatAreRight) {
  for (const PlanSpec& s : specs()) EXPECT_EQ(error_of(s), "") << s.describe();
}

TEST_F(PlanCheck, FindsConvolutionsThatAreWrong) {
  for (const PlanSpec& s : specs()) {
    const std::string what = s.describe();
    EXPECT_NE(error_of(s, kWrongColumn), "") << what;
    EXPECT_NE(error_of(s, kUnwrittenColumn).find("not written"), std::string::npos) << what;
    EXPECT_NE(error_of(s, kOneUnwritten).find("1 of "), std::string::npos) << what;
    EXPECT_NE(error_of(s, kAdded), "") << what;
    EXPECT_NE(error_of(s, kTooLong).find("bytes after the result are overwritten"), std::string::npos)
        << what;
    if (s.in_c > 1) {
      EXPECT_NE(error_of(s, kReversed), "") << what;
    }
  }
}

// Winograd's transforms in float32 round whole numbers, too. 16 bits hold no number that is only a bit off.
TEST_F(PlanCheck, RoundingErrorsInFloat32AreNotWrong) {
  for (const PlanSpec& s : specs()) {
    const auto error_if_off_by = [&](double by) {
      return whole_error_of(s, [=](Result& r) {
        for (double& number : r.numbers) number += by;
      });
    };
    const cuda::PlanError small = error_if_off_by(1.0 / 32), large = error_if_off_by(1.0 / 8);
    if (s.type == DType::f32) {
      EXPECT_TRUE(small.inexact) << s.describe();
      EXPECT_NE(small.text.find("rounding errors"), std::string::npos) << small.text;
    }
    EXPECT_NE(small.text, "") << s.describe();
    EXPECT_EQ(small.inexact, s.type == DType::f32) << s.describe();
    EXPECT_NE(large.text, "") << s.describe();
    EXPECT_FALSE(large.inexact) << s.describe() << ": " << large.text;
  }
}

TEST_F(PlanCheck, FindsALostPartOfAConvolution) {
  for (const PlanSpec& s : specs()) {
    const std::string what = s.describe();
    const std::int64_t of_group = s.pass == Pass::backward_data ? s.out_c / s.groups : s.in_c / s.groups;
    if (s.pass == Pass::backward_weights) {
      EXPECT_NE(error_of(s, kNone, [&](std::int64_t n, auto...) { return n != s.n - 1; }), "") << what;
      EXPECT_NE(
          error_of(s, kNone,
                   [&](std::int64_t, std::int64_t out, auto...) { return out % s.out[2] != s.out[2] - 1; }),
          "")
          << what;
    } else {
      EXPECT_NE(error_of(s, kNone, [&](auto, auto, auto, std::int64_t c) { return c != of_group - 1; }), "")
          << what;
      EXPECT_NE(
          error_of(s, kNone, [&](auto, auto, std::int64_t k, auto) { return k != positions(s.kernel) - 1; }),
          "")
          << what;
    }
  }
}

std::vector<ProductShape> shapes() {
  std::vector<ProductShape> all;
  for (const auto& [from, to] : {std::pair{DType::f32, DType::f32},
                                 {DType::bf16, DType::bf16},
                                 {DType::f16, DType::f16},
                                 {DType::bf16, DType::f32}})
    for (const bool transposed_a : {false, true})
      for (const bool transposed_b : {false, true})
        for (const auto& [m, n, k] : {std::tuple{3, 5, 700}, {40, 33, 17}, {2, 3, 4099}, {1, 1, 1}}) {
          ProductShape s{.m = m, .n = n, .k = k, .transposed_a = transposed_a, .transposed_b = transposed_b};
          s.from = from, s.to = to;
          s.bias = !transposed_a;
          if (transposed_b) s.alignment = static_cast<std::uint32_t>(size_in_bytes(from));
          all.push_back(s);
        }
  return all;
}

TEST_F(PlanCheck, AcceptsProductsThatAreRight) {
  for (const ProductShape& s : shapes()) EXPECT_EQ(error_of(s), "") << s.describe();
}

TEST_F(PlanCheck, FindsProductsThatAreWrong) {
  for (const ProductShape& s : shapes()) {
    const std::string what = s.describe();
    EXPECT_NE(error_of(s, kWrongColumn), "") << what;
    EXPECT_NE(error_of(s, kUnwrittenColumn).find("not written"), std::string::npos) << what;
    EXPECT_NE(error_of(s, kAdded), "") << what;
    EXPECT_NE(error_of(s, kTooLong).find("bytes after the result are overwritten"), std::string::npos)
        << what;
    // 4,099 and 4,096 are the same in bfloat16: few terms must be other than 0.
    EXPECT_NE(error_of(s, kNone, s.k - 1), "") << what;
    EXPECT_NE(error_of(s, kNone, s.k / 2), "") << what;
    if (s.bias && s.m > 2) {
      EXPECT_NE(error_of(s, kNone, -1, 1), "") << what;
    }
  }
}

// The shapes whose float32 gradient of the weights cuDNN 9.19 computed wrongly on an H100. Prints what the
// library would have chosen, and what the check says about it.
TEST_F(PlanCheck, ChosenPlansAreRightWherePaddingDiffersAlongOneAxis) {
  for (const std::int64_t n : {1, 2, 3})
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights})
      for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
        PlanSpec s = unevenly_padded(pass, n, 4);
        s.type = type;
        const auto check = [&](const cuda::Plan& plan) {
          return cuda::error_of_plan(s, plan.workspace_bytes(),
                                     [&](auto... operands) { plan.run(operands...); })
              .text;
        };
        try {
          const std::string error = check(*cuda::plan_for(s, false));
          if (!error.empty()) std::cout << cuda::chosen_algorithms() << "  " << error << "\n";
          EXPECT_EQ(check(*cuda::plan_for(s, true)), "") << s.describe();
        } catch (const NotSupported& unsupported) {  // cuDNN has no engine, or none that is right
          std::cout << unsupported.what() << "\n";
        }
        cuda::forget_algorithms();
      }
}

TEST_F(PlanCheck, SaysWhichNumberIsWrong) {
  ProductShape s{.m = 2, .n = 2, .k = 1};
  const Damage second = [](Result& r) { r.numbers[1] = 9; };
  const std::string error = error_of(s, second);
  EXPECT_TRUE(error == "1 of 4 checked numbers are wrong (number 1 is 9, not 1)" ||
              error == "1 of 4 checked numbers are wrong (number 1 is 9, not -1)")
      << error;
}

}  // namespace
}  // namespace lockstep
