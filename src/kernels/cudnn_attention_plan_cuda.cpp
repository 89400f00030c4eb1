// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cudnn_attention_plan_cuda.h"

#include <array>
#include <cmath>
#include <deque>
#include <limits>
#include <utility>

#include "core/error.h"

namespace lockstep::cuda {
namespace {

constexpr std::int64_t kMargin = std::int64_t{1} << 20;

/// Extents and strides of a tensor: samples, heads, rows, columns.
struct Form {
  std::array<std::int64_t, 4> extents, strides;
};

/// The tensors' forms in a problem.
struct Forms {
  const AttentionPlanSpec& s;

  Form positions(std::int64_t count, std::int64_t stride) const {
    return {{s.n, s.heads, count, s.head_size}, {count * stride, s.head_size, stride, 1}};
  }
  Form queries() const { return positions(s.queries, s.query_stride); }
  Form keys() const { return positions(s.keys, s.key_stride); }
  Form outputs() const { return positions(s.queries, s.heads * s.head_size); }
  Form scores() const { return packed(s.queries, s.keys); }
  Form statistics() const { return packed(s.queries, 1); }
  static Form transposed(Form form) {
    std::swap(form.extents[2], form.extents[3]);
    std::swap(form.strides[2], form.strides[3]);
    return form;
  }
  Form packed(std::int64_t rows, std::int64_t columns) const {
    return {{s.n, s.heads, rows, columns}, {s.heads * rows * columns, rows * columns, columns, 1}};
  }
};

/// Makes the tensors and operations of a graph, in order.
class GraphBuilder {
 public:
  explicit GraphBuilder(const std::string& what) : what_(what) {}

  using Tensor = const Descriptor&;
  Tensor tensor(AttentionTensor id, const Form& form, cudnnDataType_t type) {
    return add(static_cast<std::int64_t>(id), form, type, false, false);
  }
  Tensor scalar(AttentionTensor id) {
    return add(static_cast<std::int64_t>(id), {{1, 1, 1, 1}, {1, 1, 1, 1}}, CUDNN_DATA_FLOAT, false, true);
  }
  Tensor between(const Form& form, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return add(next_++, form, type, true, false);
  }

  Tensor product(Tensor a, Tensor b, Tensor c) {
    Descriptor product(CUDNN_BACKEND_MATMUL_DESCRIPTOR, what_);
    product.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT).finalize();
    operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
        .set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a)
        .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b)
        .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, c)
        .set(CUDNN_ATTR_OPERATION_MATMUL_DESC, product)
        .finalize();
    return c;
  }
  Tensor reduction(cudnnReduceTensorOp_t kind, Tensor x, Tensor y) {
    Descriptor reduction(CUDNN_BACKEND_REDUCTION_DESCRIPTOR, what_);
    reduction.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, kind)
        .set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
        .finalize();
    operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR)
        .set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x)
        .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y)
        .set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, reduction)
        .finalize();
    return y;
  }
  Tensor map(cudnnPointwiseMode_t mode, Tensor x, Tensor y) {
    pointwise(mode, x, y, CUDNN_DATA_FLOAT).finalize();
    return y;
  }
  Tensor map(cudnnPointwiseMode_t mode, Tensor x, Tensor b, Tensor y,
             cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    pointwise(mode, x, y, type).set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b).finalize();
    return y;
  }
  /// Row or column numbers of x.
  Tensor index(Tensor x, std::int64_t axis, Tensor y) {
    pointwise(CUDNN_POINTWISE_GEN_INDEX, x, y, CUDNN_DATA_FLOAT, axis).finalize();
    return y;
  }
  /// y = x where `chosen`, else b.
  Tensor select(Tensor x, Tensor b, Tensor chosen, Tensor y) {
    pointwise(CUDNN_POINTWISE_BINARY_SELECT, x, y, CUDNN_DATA_FLOAT)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, chosen)
        .finalize();
    return y;
  }
  /// The same numbers with other extents and strides.
  Tensor view(Tensor x, Tensor y) {
    operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR)
        .set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x)
        .set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y)
        .finalize();
    return y;
  }
  Descriptor graph(const PlanTarget& target) const {
    std::vector<cudnnBackendDescriptor_t> all;
    for (const Descriptor& operation : operations_) all.push_back(operation.native());
    return graph_of(all, target, what_);
  }

 private:
  Tensor add(std::int64_t id, const Form& form, cudnnDataType_t type, bool between, bool by_value) {
    Descriptor& made = tensors_.emplace_back(CUDNN_BACKEND_TENSOR_DESCRIPTOR, what_);
    made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type)
        .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id)
        .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, kPlanAlignment)
        .set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, form.extents.data(), 4)
        .set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, form.strides.data(), 4)
        .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, between)
        .set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, by_value)
        .finalize();
    return made;
  }
  Descriptor& operation(cudnnBackendDescriptorType_t type) { return operations_.emplace_back(type, what_); }
  Descriptor& pointwise(cudnnPointwiseMode_t mode, Tensor x, Tensor y, cudnnDataType_t type,
                        std::int64_t axis = -1) {
    Descriptor pointwise(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, what_);
    pointwise.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode)
        .set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, type);
    if (axis >= 0) pointwise.set(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, axis);
    pointwise.finalize();
    return operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwise)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  }

  const std::string& what_;
  std::deque<Descriptor> tensors_, operations_;
  std::int64_t next_ = static_cast<std::int64_t>(AttentionTensor::between);
};

using Id = AttentionTensor;

/// x where the key's number is at most the query's, else minus infinity.
GraphBuilder::Tensor causal(GraphBuilder& g, const Forms& forms, GraphBuilder::Tensor x) {
  const auto& rows = g.index(x, 2, g.between(forms.scores(), CUDNN_DATA_INT32));
  const auto& columns = g.index(x, 3, g.between(forms.scores(), CUDNN_DATA_INT32));
  const auto& attended = g.map(CUDNN_POINTWISE_CMP_GE, rows, columns,
                               g.between(forms.scores(), CUDNN_DATA_BOOLEAN), CUDNN_DATA_BOOLEAN);
  return g.select(x, g.scalar(Id::masked), attended, g.between(forms.scores()));
}

void add_forward(GraphBuilder& g, const AttentionPlanSpec& s) {
  const Forms forms{s};
  const cudnnDataType_t type = cudnn_type(s.type);
  const auto& q = g.tensor(Id::q, forms.queries(), type);
  const auto& k = g.tensor(Id::k, Forms::transposed(forms.keys()), type);
  const auto& v = g.tensor(Id::v, forms.keys(), type);
  const auto& product = g.product(q, k, g.between(forms.scores()));
  const auto& scaled = g.map(CUDNN_POINTWISE_MUL, product, g.scalar(Id::factor), g.between(forms.scores()));
  const auto& x = s.causal ? causal(g, forms, scaled) : scaled;
  const auto& max = g.reduction(CUDNN_REDUCE_TENSOR_MAX, x, g.between(forms.statistics()));
  const auto& below = g.map(CUDNN_POINTWISE_SUB, x, max, g.between(forms.scores()));
  const auto& e = g.map(CUDNN_POINTWISE_EXP, below, g.between(forms.scores()));
  const auto& sum = g.reduction(CUDNN_REDUCE_TENSOR_ADD, e, g.between(forms.statistics()));
  const auto& logarithm = g.map(CUDNN_POINTWISE_LOG, sum, g.between(forms.statistics()));
  g.map(CUDNN_POINTWISE_ADD, max, logarithm, g.tensor(Id::statistics, forms.statistics(), CUDNN_DATA_FLOAT));
  const auto& p = g.map(CUDNN_POINTWISE_DIV, e, sum, g.between(forms.scores(), type));
  g.product(p, v, g.tensor(Id::y, forms.outputs(), type));
}

void add_backward(GraphBuilder& g, const AttentionPlanSpec& s) {
  const Forms forms{s};
  const cudnnDataType_t type = cudnn_type(s.type);
  const auto& q = g.tensor(Id::q, forms.queries(), type);
  const auto& k = g.tensor(Id::k, Forms::transposed(forms.keys()), type);
  const auto& v = g.tensor(Id::v, Forms::transposed(forms.keys()), type);
  const auto& y = g.tensor(Id::y, forms.outputs(), type);
  const auto& dy = g.tensor(Id::dy, forms.outputs(), type);
  const auto& statistics = g.tensor(Id::statistics, forms.statistics(), CUDNN_DATA_FLOAT);
  const auto& factor = g.scalar(Id::factor);
  // cuDNN expects a factor of these sums, the share that dropout keeps.
  const auto& terms = g.map(CUDNN_POINTWISE_MUL, dy, y, g.between(forms.packed(s.queries, s.head_size)));
  const auto& sums = g.reduction(CUDNN_REDUCE_TENSOR_ADD, terms, g.between(forms.statistics()));
  const auto& delta = g.map(CUDNN_POINTWISE_MUL, sums, g.scalar(Id::one),
                            g.tensor(Id::delta, forms.statistics(), CUDNN_DATA_FLOAT));
  const auto& product = g.product(q, k, g.between(forms.scores()));
  const auto& scaled = g.map(CUDNN_POINTWISE_MUL, product, factor, g.between(forms.scores()));
  const auto& below = g.map(CUDNN_POINTWISE_SUB, scaled, statistics, g.between(forms.scores()));
  const auto& x = s.causal ? causal(g, forms, below) : below;
  const auto& p = g.map(CUDNN_POINTWISE_EXP, x, g.between(forms.scores()));
  const Form transposed = Forms::transposed(forms.scores());
  g.product(g.view(p, g.between(transposed, type)), dy, g.tensor(Id::dv, forms.keys(), type));
  const auto& dp = g.product(dy, v, g.between(forms.scores()));
  const auto& centred = g.map(CUDNN_POINTWISE_SUB, dp, delta, g.between(forms.scores()));
  const auto& dx = g.map(CUDNN_POINTWISE_MUL, centred, p, g.between(forms.scores()));
  const auto& ds = g.map(CUDNN_POINTWISE_MUL, dx, factor, g.between(forms.scores()));
  g.product(g.view(ds, g.between(transposed, type)), q, g.tensor(Id::dk, forms.keys(), type));
  g.product(ds, g.view(k, g.between(forms.keys(), type)), g.tensor(Id::dq, forms.queries(), type));
}

std::int64_t rounded_up(std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; }

}  // namespace

std::int64_t most_attention_workspace(const AttentionPlanSpec& s) {
  if (s.pass == AttentionPlanSpec::Pass::forward) return kMargin;
  return kMargin + 2 * s.n * s.heads * rounded_up(s.queries, 128) * rounded_up(s.keys, 128);
}

FoundPlan find_attention_plan(const AttentionPlanSpec& spec, const PlanTarget& target,
                              const std::string& what) {
  GraphBuilder builder(what);
  if (spec.pass == AttentionPlanSpec::Pass::forward)
    add_forward(builder, spec);
  else
    add_backward(builder, spec);
  return choose_plan(builder.graph(target), target, true, most_attention_workspace(spec), what,
                     [](const FoundPlan&) { return true; });
}

AttentionScalars::AttentionScalars(const AttentionPlanSpec& spec)
    : factor(static_cast<float>(1.0 / std::sqrt(static_cast<double>(spec.head_size)))),
      masked(-std::numeric_limits<float>::infinity()) {}

AttentionAddresses::AttentionAddresses(const AttentionPlanSpec& spec, const AttentionOperands& o,
                                       const AttentionScalars& scalars)
    : ids{Id::q, Id::k, Id::v, Id::y, Id::statistics, Id::factor}, at{o.q, o.k,          o.v,
                                                                      o.y, o.statistics, &scalars.factor} {
  const auto add = [&](const void* address, Id id) {
    at.push_back(address);
    ids.push_back(id);
  };
  if (spec.causal) add(&scalars.masked, Id::masked);
  if (spec.pass == AttentionPlanSpec::Pass::backward) {
    add(o.dy, Id::dy);
    add(o.dq, Id::dq);
    add(o.dk, Id::dk);
    add(o.dv, Id::dv);
    add(o.delta, Id::delta);
    add(&scalars.one, Id::one);
  }
}

Descriptor attention_variant_pack(const AttentionAddresses& addresses, void* workspace,
                                  const std::string& what) {
  const auto count = static_cast<std::int64_t>(addresses.at.size());
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, what);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, addresses.at.data(), count)
      .set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, addresses.ids.data(), count)
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace)
      .finalize();
  return pack;
}

std::string AttentionPlanSpec::describe() const {
  return fmt::format("attention of {} x {} heads of {}, {} queries, {} keys{}, strides {} and {} ({}) in {}",
                     n, heads, head_size, queries, keys, causal ? ", causal" : "", query_stride, key_stride,
                     pass == Pass::forward ? "forward" : "gradients", name_of(type));
}

}  // namespace lockstep::cuda
