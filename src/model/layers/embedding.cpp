// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// embedding: a row of a table for each id.
#include <algorithm>

#include "config/option.h"
#include "model/layer_table.h"

namespace lockstep {

namespace {

constexpr std::int64_t kMaxRows = std::int64_t{1} << 24;  ///< ids are float32 whole numbers

struct EmbeddingOptions {
  std::int64_t rows = 0;
  std::int64_t units = 0;
  std::optional<std::int64_t> padding_index;
  Node initializer;
};
constexpr ParamSpec kTable[] = {
    option<&EmbeddingOptions::rows>("rows", kRequired, between(1, 2147483647),
                                    "rows of the table: ids are 0 to rows - 1"),
    option<&EmbeddingOptions::units>("units", kRequired, between(1, 16777216), "numbers per row"),
    option<&EmbeddingOptions::padding_index>("padding_index", "null", between(0, 2147483646).or_null(),
                                             "id whose output is zero; its row gets no gradient"),
    option<&EmbeddingOptions::initializer>("initializer", "uniform", {}, "initial table"),
};

/// Turns ids of shape S into rows of shape S + {units}. The gradient of the ids is zero.
class Embedding final : public Layer {
 public:
  using Options = EmbeddingOptions;
  Embedding(std::string name, const Options& o, const Params& p)
      : Layer(std::move(name)),
        rows_(o.rows),
        units_(o.units),
        padding_(o.padding_index.value_or(-1)),
        initializer_(make_initializer(o.initializer)) {
    if (rows_ >= kMaxRows)
      throw p.error(option_name<&Options::rows>(p),
                    fmt::format("{} rows; ids are float32 whole numbers, exact below {}", rows_, kMaxRows));
    if (padding_ >= rows_)
      throw p.error(option_name<&Options::padding_index>(p),
                    fmt::format("{} is not one of the {} rows", padding_, rows_));
  }

  /// Ids stay float32, because a 16-bit type cannot represent them.
  LayerTraits traits() const override { return {.kind = "embedding", .outputs = TypeRule::model}; }

  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    LOCKSTEP_REQUIRE(inputs.size() == 1, ErrorKind::config,
                     "layer {}: embedding takes one input, the ids, not {}", name(), inputs.size());
    std::vector<std::int64_t> extents(inputs[0].extents().begin(), inputs[0].extents().end());
    positions_ = inputs[0].num_elements();
    extents.push_back(units_);
    return {Shape(extents)};
  }

  void declare(VariableStore& variables) override {
    table_id_ = variables.declare_table(name() + "/embeddings", Shape{rows_, units_}, initializer_,
                                        {.per_sample = positions_});
  }

  LayerMemory prepare(const PrepareContext& context) override {
    LayerMemory memory;
    if (!context.training) return memory;
    for (std::int64_t n : context.sample_counts) {
      const std::int64_t positions = n * positions_;
      const EmbeddingKernels& kernels = context.kernels.embedding;
      const std::size_t work = std::max(kernels.group_bytes(positions), kernels.sum_bytes(positions, units_));
      memory.scratch_bytes = std::max(memory.scratch_bytes, touched_bytes(positions) + work);
    }
    return memory;
  }

  void forward(const Pass& pass) override {
    const std::int64_t bad =
        pass.kernels.embedding.gather(pass.lane, pass.n * positions_, rows_, units_, pass.inputs[0], padding_,
                                      pass.value(table_id_), pass.outputs[0]);
    if (bad >= 0)
      throw Error(
          ErrorKind::data,
          fmt::format("layer {}: sample {} of the global batch has the id {} at position {}, but ids are "
                      "0 to {}",
                      name(), pass.first_sample + bad / positions_,
                      static_cast<double>(pass.inputs[0].f32()[bad]), bad % positions_, rows_ - 1),
          {}, "give the layer as many rows as the data has ids");
  }

  void backward(const Pass& pass) override {
    const EmbeddingKernels& kernels = pass.kernels.embedding;
    const std::int64_t positions = pass.n * positions_;
    if (pass.dx[0] != nullptr) pass.kernels.elementwise.zero(pass.lane, positions, pass.dx[0]);
    if (!pass.wants(table_id_)) return;
    const SparseRows* sparse = pass.sparse_gradient(table_id_);
    TouchedRows touched = TouchedRows::carve(static_cast<std::int32_t*>(pass.lane.scratch), positions);
    if (sparse != nullptr) touched = touched.with(sparse->rows, sparse->count);
    void* workspace = static_cast<std::byte*>(pass.lane.scratch) + touched_bytes(positions);
    kernels.group_by_row(pass.lane, positions, rows_, pass.inputs[0], padding_, workspace, touched);
    if (sparse != nullptr) {
      kernels.accumulate(pass.lane, positions, units_, touched, pass.dy[0], false, workspace, sparse->values);
    } else {
      float* gradient = pass.gradient(table_id_);
      pass.kernels.elementwise.zero(pass.lane, rows_ * units_, gradient);
      kernels.accumulate(pass.lane, positions, units_, touched, pass.dy[0], true, workspace, gradient);
    }
  }

 private:
  static std::size_t touched_bytes(std::int64_t positions) {
    return (static_cast<std::size_t>(TouchedRows::words(positions)) * sizeof(std::int32_t) + 63) / 64 * 64;
  }

  std::int64_t rows_, units_, padding_, positions_ = 0;
  std::shared_ptr<const Initializer> initializer_;
  VariableId table_id_ = VariableId::none;
};

}  // namespace

extern const LayerEntry kEmbeddingLayer = {"embedding", "a row of a table for each id", kTable,
                                           make_layer<Embedding>};

}  // namespace lockstep
