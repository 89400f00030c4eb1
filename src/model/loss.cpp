// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/loss.h"

#include <array>
#include <vector>

#include "core/named_options.h"

namespace lockstep {

namespace {

/// -log softmax(x)[label], or -sum_j t_j log softmax(x)_j with dense labels t.
class SoftmaxCrossEntropy final : public Loss {
 public:
  void check(const Shape& output, bool dense_labels, std::int64_t label_columns) const override {
    LOCKSTEP_REQUIRE(output.rank() == 1, ErrorKind::config,
                     "softmax_cross_entropy takes one row of class outputs per sample, but the last layer "
                     "gives {}; end with a dense layer",
                     output.to_string());
    const std::int64_t expected = dense_labels ? output[0] : 1;
    LOCKSTEP_REQUIRE(
        label_columns == expected, ErrorKind::config,
        "softmax_cross_entropy over {} classes takes {} per sample, but the data has {} label columns",
        output[0], dense_labels ? "a row of that many label values" : "one class index", label_columns);
  }
  std::int64_t num_classes(const Shape& output) const override { return output[0]; }
  void run(const KernelTable& kernels, const Lane& lane, std::int64_t n, const Shape& output,
           const float* outputs, const Labels& labels, float gradient_scale, float* d_outputs,
           LossSums* sums) const override {
    if (labels.indices != nullptr)
      kernels.loss.softmax_cross_entropy(lane, n, output[0], outputs, labels.indices, gradient_scale,
                                         d_outputs, &sums->loss, &sums->correct);
    else
      kernels.loss.softmax_cross_entropy_dense(lane, n, output[0], outputs, labels.rows, gradient_scale,
                                               d_outputs, &sums->loss, &sums->correct);
  }
  void predict(const KernelTable& kernels, const Lane& lane, std::int64_t n, const Shape& output,
               const float* outputs, float* predictions) const override {
    kernels.loss.softmax(lane, n, output[0], outputs, predictions);
  }
};

constexpr std::array kOwn = {
    LossEntry{"softmax_cross_entropy",
              "softmax with cross-entropy over classes; labels are indices or dense rows",
              {},
              [](const Params&) -> std::unique_ptr<Loss> { return std::make_unique<SoftmaxCrossEntropy>(); }},
};

std::vector<LossEntry>& entries() {
  static std::vector<LossEntry> table(kOwn.begin(), kOwn.end());
  return table;
}

}  // namespace

std::span<const LossEntry> loss_table() { return entries(); }

void register_loss(const LossEntry& entry) {
  for (const LossEntry& known : entries())
    LOCKSTEP_REQUIRE(known.name != entry.name, ErrorKind::config, "a loss named '{}' exists already",
                     entry.name);
  entries().push_back(entry);
}

std::unique_ptr<Loss> make_loss(const Node& node) {
  const NamedOptions named = named_options(node, "loss");
  const LossEntry& entry = find_entry(loss_table(), named, "loss");
  return entry.make(Params(named.options, entry.table, "loss " + named.name));
}

}  // namespace lockstep
