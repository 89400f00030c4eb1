// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Layers that move numbers or join inputs; views.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "layer_cases.h"

namespace lockstep {

namespace {

const std::vector<std::int64_t> kMicroshards = {2, 0, 1};

/// Calls body(index of each axis, place) for every element of a sample.
template <typename Body>
void for_each_element(const Shape& shape, const Body& body) {
  for (std::int64_t i = 0; i < shape.num_elements(); ++i) {
    std::vector<std::int64_t> index(static_cast<std::size_t>(shape.rank()));
    std::int64_t rest = i;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      index[static_cast<std::size_t>(axis)] = rest % shape[axis];
      rest /= shape[axis];
    }
    body(index, static_cast<std::size_t>(i));
  }
}
std::size_t place(const Shape& shape, const std::vector<std::int64_t>& index) {
  std::int64_t at = 0;
  for (int axis = 0; axis < shape.rank(); ++axis)
    at = at * shape[axis] + index[static_cast<std::size_t>(axis)];
  return static_cast<std::size_t>(at);
}

/// Appends, for every sample, output[i] = input[source(index of i)].
template <typename Source>
void gather(const Values& x, const Shape& input, const Shape& output, Values& y, const Source& source) {
  const auto step = static_cast<std::size_t>(input.num_elements());
  for (std::size_t sample = 0; sample < x.size() / step; ++sample)
    for_each_element(output, [&](const std::vector<std::int64_t>& index, std::size_t) {
      y.push_back(x[sample * step + place(input, source(index))]);
    });
}

LayerCase view(const std::string& yaml, const std::string& name, const Shape& input) {
  return {.name = name,
          .yaml = yaml,
          .inputs = {input},
          .reference = [](const Inputs& in, const Variables&) { return in[0]; },
          .microshards = kMicroshards};
}

LayerCase concat(const std::string& name, const std::string& yaml, int axis, std::vector<Shape> inputs) {
  return {.name = name,
          .yaml = yaml,
          .inputs = inputs,
          .reference =
              [=](const Inputs& in, const Variables&) {
                const auto samples = in[0].size() / static_cast<std::size_t>(inputs[0].num_elements());
                std::int64_t outer = 1;
                for (int a = 0; a < axis; ++a) outer *= inputs[0][a];
                Values y;
                for (std::size_t row = 0; row < samples * static_cast<std::size_t>(outer); ++row)
                  for (std::size_t i = 0; i < inputs.size(); ++i) {
                    const auto width = static_cast<std::size_t>(inputs[i].num_elements() / outer);
                    for (std::size_t e = 0; e < width; ++e) y.push_back(in[i][row * width + e]);
                  }
                return y;
              },
          .microshards = kMicroshards};
}

LayerCase split(const std::string& name, const std::string& yaml, const Shape& input, int axis,
                std::vector<std::int64_t> sizes) {
  return {.name = name,
          .yaml = yaml,
          .inputs = {input},
          .reference =
              [=](const Inputs& in, const Variables&) {
                Values y;
                std::int64_t first = 0;
                for (std::int64_t size : sizes) {
                  std::vector<std::int64_t> extents(input.extents().begin(), input.extents().end());
                  extents[static_cast<std::size_t>(axis)] = size;
                  gather(in[0], input, Shape(extents), y, [&](std::vector<std::int64_t> index) {
                    index[static_cast<std::size_t>(axis)] += first;
                    return index;
                  });
                  first += size;
                }
                return y;
              },
          .microshards = kMicroshards};
}

LayerCase slice(const std::string& name, const std::string& yaml, const Shape& input, const Shape& output,
                std::vector<std::int64_t> begin) {
  return {.name = name,
          .yaml = yaml,
          .inputs = {input},
          .reference =
              [=](const Inputs& in, const Variables&) {
                Values y;
                gather(in[0], input, output, y, [&](std::vector<std::int64_t> index) {
                  for (std::size_t a = 0; a < index.size(); ++a) index[a] += begin[a];
                  return index;
                });
                return y;
              },
          .microshards = kMicroshards};
}

LayerCase transpose(const std::string& name, const std::string& yaml, const Shape& input,
                    std::vector<int> permutation) {
  std::vector<std::int64_t> extents;
  for (int axis : permutation) extents.push_back(input[axis]);
  return {.name = name,
          .yaml = yaml,
          .inputs = {input},
          .reference =
              [=](const Inputs& in, const Variables&) {
                Values y;
                gather(in[0], input, Shape(extents), y, [&](const std::vector<std::int64_t>& index) {
                  std::vector<std::int64_t> source(index.size());
                  for (std::size_t a = 0; a < index.size(); ++a)
                    source[static_cast<std::size_t>(permutation[a])] = index[a];
                  return source;
                });
                return y;
              },
          .microshards = kMicroshards};
}

/// `b` is a's shape with 1 where it is repeated.
LayerCase multiply(const std::string& name, const Shape& a, const Shape& given, const Shape& b) {
  return {.name = name,
          .yaml = "multiply",
          .inputs = {a, given},
          .reference =
              [=](const Inputs& in, const Variables&) {
                Values factors, y = in[0];
                gather(in[1], b, a, factors, [&](std::vector<std::int64_t> index) {
                  for (int axis = 0; axis < b.rank(); ++axis)
                    if (b[axis] == 1) index[static_cast<std::size_t>(axis)] = 0;
                  return index;
                });
                for (std::size_t i = 0; i < y.size(); ++i) y[i] *= factors[i];
                return y;
              },
          .microshards = kMicroshards};
}

LayerCase reduce(const std::string& operation, const std::string& name, const std::string& options,
                 const Shape& input, std::vector<int> axes) {
  std::vector<std::int64_t> extents(input.extents().begin(), input.extents().end());
  for (int axis : axes) extents[static_cast<std::size_t>(axis)] = 1;
  const Shape output(extents);
  return {.name = "reduce_" + operation + "_" + name,
          .yaml = "reduce: {operation: " + operation + options + "}",
          .inputs = {input},
          .reference =
              [=](const Inputs& in, const Variables&) {
                const auto step = static_cast<std::size_t>(input.num_elements()),
                           width = static_cast<std::size_t>(output.num_elements());
                Values y(in[0].size() / step * width, operation == "max" ? -1e30 : 0.0);
                for (std::size_t sample = 0; sample < in[0].size() / step; ++sample)
                  for_each_element(input, [&](std::vector<std::int64_t> index, std::size_t i) {
                    for (int axis : axes) index[static_cast<std::size_t>(axis)] = 0;
                    double& to = y[sample * width + place(output, index)];
                    const double x = in[0][sample * step + i];
                    if (operation == "max")
                      to = std::max(to, x);
                    else
                      to += operation == "mean" ? x * static_cast<double>(width) / static_cast<double>(step)
                                                : x;
                  });
                return y;
              },
          .microshards = kMicroshards};
}

void add_reduce_cases(std::vector<LayerCase>& cases) {
  for (const char* operation : {"mean", "max", "sum"}) {
    cases.push_back(reduce(operation, "all", "", Shape{3, 5}, {0, 1}));
    cases.push_back(reduce(operation, "last", ", axes: -1", Shape{3, 17}, {1}));
    cases.push_back(reduce(operation, "first", ", axes: [0]", Shape{3, 5}, {0}));
    cases.push_back(
        reduce(operation, "middle", ", axes: [1, 2], keep_dims: true", Shape{2, 3, 2, 5}, {1, 2}));
    cases.push_back(reduce(operation, "apart", ", axes: [2, 0]", Shape{3, 4, 5}, {0, 2}));
    cases.push_back(
        reduce(operation, "apart_too", ", axes: [0, 2], keep_dims: true", Shape{2, 3, 2, 3}, {0, 2}));
    cases.push_back(reduce(operation, "one", "", Shape{1}, {0}));
  }
}

}  // namespace

void add_structure_cases(std::vector<LayerCase>& cases) {
  cases.push_back(view("identity", "identity", Shape{3, 5}));
  cases.push_back(view("reshape: {shape: [5, -1]}", "reshape", Shape{3, 5, 2}));
  cases.push_back(view("reshape: {shape: 30}", "reshape_to_features", Shape{3, 5, 2}));
  cases.push_back(view("squeeze", "squeeze", Shape{1, 3, 1, 5}));
  cases.push_back(view("squeeze: {axes: -1}", "squeeze_one", Shape{1, 3, 1}));
  cases.push_back(view("expand_dims: {axis: 1}", "expand_dims", Shape{3, 5}));
  cases.push_back(view("expand_dims: {axis: -1}", "expand_dims_last", Shape{3}));
  LayerCase stop = view("stop_gradient", "stop_gradient", Shape{3, 5});
  stop.fixed_inputs = {{0, random_floats(45, 1)}};
  cases.push_back(stop);

  cases.push_back(concat("concat", "concat", 1, {Shape{3, 5}, Shape{3, 1}, Shape{3, 17}}));
  cases.push_back(concat("concat_first_axis", "concat: {axis: 0}", 0, {Shape{2, 3}, Shape{1, 3}}));
  cases.push_back(concat("concat_middle_axis", "concat: {axis: -2}", 1, {Shape{2, 1, 3}, Shape{2, 4, 3}}));
  cases.push_back(concat("concat_one", "concat", 0, {Shape{3}}));
  cases.push_back(split("split", "split: {parts: 3}", Shape{2, 6}, 1, {2, 2, 2}));
  cases.push_back(split("split_sizes", "split: {sizes: [1, 17, 3]}", Shape{3, 21}, 1, {1, 17, 3}));
  cases.push_back(split("split_axis", "split: {axis: 1, sizes: [3, 1]}", Shape{2, 4, 3}, 1, {3, 1}));
  cases.push_back(split("split_one", "split: {axis: 0, parts: 1}", Shape{3}, 0, {3}));
  cases.push_back(slice("slice", "slice: {begin: [1, 0, 2], size: [2, -1, 1]}", Shape{3, 5, 4},
                        Shape{2, 5, 1}, {1, 0, 2}));
  cases.push_back(slice("slice_features", "slice: {begin: 3, size: 17}", Shape{21}, Shape{17}, {3}));
  cases.push_back(transpose("transpose", "transpose: {permutation: [1, 0]}", Shape{3, 17}, {1, 0}));
  cases.push_back(
      transpose("transpose_three", "transpose: {permutation: [2, 0, 1]}", Shape{3, 4, 5}, {2, 0, 1}));
  cases.push_back(
      transpose("transpose_outer", "transpose: {permutation: [1, 0, 2]}", Shape{3, 4, 5}, {1, 0, 2}));
  cases.push_back(
      transpose("transpose_four", "transpose: {permutation: [3, 1, 0, 2]}", Shape{2, 3, 4, 3}, {3, 1, 0, 2}));
  cases.push_back(transpose("transpose_nothing", "transpose: {permutation: [0, 1]}", Shape{3, 4}, {0, 1}));

  cases.push_back(multiply("multiply", Shape{3, 17}, Shape{3, 17}, Shape{3, 17}));
  cases.push_back(multiply("multiply_channels", Shape{3, 2, 5}, Shape{5}, Shape{1, 1, 5}));
  cases.push_back(multiply("multiply_channels_spelt_out", Shape{3, 2, 4}, Shape{1, 1, 4}, Shape{1, 1, 4}));
  cases.push_back(multiply("multiply_one_number", Shape{3, 5}, Shape{1}, Shape{1, 1}));
  cases.push_back(multiply("multiply_positions", Shape{3, 2, 5}, Shape{3, 2, 1}, Shape{3, 2, 1}));
  cases.push_back(multiply("multiply_middle", Shape{3, 4, 5}, Shape{3, 1, 5}, Shape{3, 1, 5}));
  add_reduce_cases(cases);

  cases.push_back({.name = "constant",
                   .yaml = "constant: {value: 2.5, shape: [3, 2]}",
                   .inputs = {},
                   .reference = [](const Inputs&, const Variables&) { return Values(18, 2.5); },
                   .microshards = kMicroshards});
  cases.push_back({.name = "constant_list",
                   .yaml = "constant: {value: [1, -2, 0.5], shape: 3}",
                   .inputs = {},
                   .reference = [](const Inputs&,
                                   const Variables&) { return Values{1, -2, 0.5, 1, -2, 0.5, 1, -2, 0.5}; },
                   .microshards = kMicroshards});
}

}  // namespace lockstep
