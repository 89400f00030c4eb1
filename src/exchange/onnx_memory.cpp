// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "exchange/onnx_memory.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "io/input_budget.h"
#include "io/wire_fields.h"
#include "onnx.pb.h"

namespace lockstep {

namespace {

/// A message of onnx.proto: the memory of its object, and its fields that are messages, texts or packed
/// lists.
struct MessageKind {
  struct Field {
    std::uint64_t number;
    const MessageKind* message;      ///< null: a text, bytes or numbers
    std::size_t bytes = 0;           ///< of the object that holds it
    std::size_t times_its_size = 1;  ///< of the memory of its contents
  };
  std::size_t bytes;
  std::vector<Field> fields;
};

template <typename Message>
MessageKind kind_of(std::vector<MessageKind::Field> fields) {
  return {sizeof(Message) + 2 * sizeof(void*), std::move(fields)};
}

const MessageKind& model_kind() {
  constexpr std::size_t kText = sizeof(std::string) + 2 * sizeof(void*);
  static const MessageKind dimension = kind_of<onnx::Dimension>({{2, nullptr, kText}});
  static const MessageKind shape = kind_of<onnx::TensorShape>({{1, &dimension}});
  static const MessageKind tensor_type = kind_of<onnx::TensorType>({{2, &shape}});
  static const MessageKind type = kind_of<onnx::Type>({{1, &tensor_type}});
  static const MessageKind value = kind_of<onnx::ValueInfo>({{1, nullptr, kText}, {2, &type}});
  static const MessageKind attribute =
      kind_of<onnx::Attribute>({{1, nullptr, kText}, {8, nullptr, 0, sizeof(std::int64_t)}});
  static const MessageKind node =
      kind_of<onnx::Node>({{1, nullptr, kText}, {2, nullptr, kText}, {5, &attribute}});
  static const MessageKind tensor = kind_of<onnx::Tensor>({{1, nullptr, 0, sizeof(std::int64_t)}});
  static const MessageKind graph =
      kind_of<onnx::Graph>({{1, &node}, {5, &tensor}, {11, &value}, {12, &value}});
  static const MessageKind operators = kind_of<onnx::OperatorSet>({{1, nullptr, kText}});
  static const MessageKind text = kind_of<onnx::Text>({{1, nullptr, kText}, {2, nullptr, kText}});
  static const MessageKind model = kind_of<onnx::Model>({{7, &graph}, {8, &operators}, {14, &text}});
  return model;
}

/// Thrown for a damaged message.
struct Damage {};

[[noreturn]] void fail(std::int64_t, std::string) { throw Damage{}; }

/// Takes what protobuf will make of a message.
void take_memory(std::string_view message, const MessageKind& kind, InputBudget& budget) {
  budget.take(kind.bytes);
  for (WireFields<fail> fields(message, 0); fields.next();) {
    const auto known = std::ranges::find(kind.fields, fields.number(), &MessageKind::Field::number);
    if (known != kind.fields.end() && known->message != nullptr && fields.is(known->number, wire::kLength))
      take_memory(fields.value(), *known->message, budget);
    else
      budget.take(known == kind.fields.end() ? fields.value().size()
                                             : known->bytes + known->times_its_size * fields.value().size());
  }
}

}  // namespace

bool take_onnx_memory(std::string_view contents, const std::string& path) {
  InputBudget budget(path, contents.size());
  try {
    take_memory(contents, model_kind(), budget);
  } catch (const Damage&) {
    return false;
  }
  return true;
}

}  // namespace lockstep
