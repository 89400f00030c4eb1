// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "exchange/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "core/error.h"

namespace lockstep {

namespace {

using Kind = PickleValue::Kind;

constexpr std::string_view kDict = "collections.OrderedDict";
constexpr std::string_view kTensor = "torch._utils._rebuild_tensor_v2";
constexpr std::string_view kParameter = "torch._utils._rebuild_parameter";
/// Everything that a pickle may name. Types of storages are looked up where tensors are made.
constexpr std::string_view kAllowed[] = {kDict,
                                         kTensor,
                                         kParameter,
                                         "torch.FloatStorage",
                                         "torch.DoubleStorage",
                                         "torch.HalfStorage",
                                         "torch.BFloat16Storage",
                                         "torch.IntStorage",
                                         "torch.LongStorage",
                                         "torch.ShortStorage",
                                         "torch.CharStorage",
                                         "torch.ByteStorage"};

}  // namespace

/// The stack machine of a pickle.
class PickleReader {
 public:
  PickleReader(Pickle& pickle, std::string_view bytes, InputBudget& budget, const std::string& where)
      : pickle_(pickle), bytes_(bytes), budget_(budget), where_(where) {}

  PickleValue* run() {
    while (true) {
      const auto opcode = static_cast<unsigned char>(take(1).front());
      if (opcode == '.') return pop();
      step(opcode);
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorKind::data, fmt::format("is refused at byte {} of its pickle: {}", at_, what), where_,
                "Only state dicts of tensors are read: torch.save(model.state_dict(), file).");
  }

  std::string_view take(std::size_t count) {
    if (bytes_.size() - at_ < count) refuse("it ends in the middle");
    at_ += count;
    return bytes_.substr(at_ - count, count);
  }
  template <typename T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view line() {
    const std::size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) refuse("it ends in the middle");
    const std::string_view text = take(end - at_);
    take(1);
    return text;
  }

  PickleValue* make(Kind kind) {
    budget_.take(sizeof(PickleValue) + 2 * sizeof(void*));
    pickle_.values_.push_back(std::make_unique<PickleValue>());
    pickle_.values_.back()->kind = kind;
    return pickle_.values_.back().get();
  }
  void push(PickleValue* value) {
    budget_.take(sizeof value);
    stack_.push_back(value);
  }
  /// Copies into the value that was made last.
  void keep_text(std::string_view text) {
    budget_.take(text.size());
    stack_.back()->text = text;
  }
  void keep_items(PickleValue* value, const std::vector<PickleValue*>& items) {
    budget_.take(items.size() * sizeof(PickleValue*));
    value->items.insert(value->items.end(), items.begin(), items.end());
  }
  void push_integer(std::int64_t integer) {
    push(make(Kind::integer));
    stack_.back()->integer = integer;
  }
  void push_text(std::string_view text) {
    push(make(Kind::text));
    keep_text(text);
  }
  void push_name(const std::string& name) {
    const bool known = std::ranges::find(kAllowed, name) != std::end(kAllowed);
    if (!known && pickle_.foreign_name_.empty()) pickle_.foreign_name_ = name;
    push(make(known ? Kind::name : Kind::foreign));
    keep_text(name);
  }
  void push_foreign(std::string_view what) {
    push(make(Kind::foreign));
    keep_text(what);
  }
  PickleValue* pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) refuse("its stack is empty");
    PickleValue* const value = stack_.back();
    stack_.pop_back();
    return value;
  }
  PickleValue* top(Kind kind) {
    PickleValue* const value = pop();
    if (value->kind != kind) refuse("a value has another kind than its use");
    push(value);
    return value;
  }
  bool on_foreign() {
    PickleValue* const value = pop();
    push(value);
    return value->kind == Kind::foreign;
  }
  std::vector<PickleValue*> pop_to_mark() {
    if (marks_.empty()) refuse("a mark is missing");
    const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<PickleValue*> values(first, stack_.end());
    stack_.erase(first, stack_.end());
    marks_.pop_back();
    return values;
  }
  void push_tuple(std::size_t count) {
    PickleValue* const tuple = make(Kind::tuple);
    for (std::size_t i = 0; i < count; ++i) tuple->items.insert(tuple->items.begin(), pop());
    budget_.take(count * sizeof(PickleValue*));
    push(tuple);
  }
  void remember(std::uint64_t place) {
    PickleValue* const value = pop();
    push(value);
    constexpr std::size_t kNodeBytes = 64;
    budget_.take(kNodeBytes);
    memo_[place] = value;
  }
  void recall(std::uint64_t place) {
    const auto found = memo_.find(place);
    if (found == memo_.end()) refuse("it recalls what it has not kept");
    push(found->second);
  }

  /// What a call of an allowed name stands for.
  void reduce() {
    PickleValue* const arguments = pop();
    PickleValue* const function = pop();
    if (function->kind == Kind::foreign) return push_foreign(function->text);
    if (function->kind != Kind::name || arguments->kind != Kind::tuple) refuse("it calls what is no name");
    const std::vector<PickleValue*>& given = arguments->items;
    if (function->text == kDict && given.empty()) return push(make(Kind::dict));
    if (function->text == kTensor && given.size() >= 4 && given[0]->kind == Kind::storage) {
      PickleValue* const tensor = make(Kind::tensor);
      keep_items(tensor, given);
      return push(tensor);
    }
    if (function->text == kParameter && !given.empty() && given[0]->kind == Kind::tensor)
      return push(given[0]);
    refuse(fmt::format("it calls {} with other arguments than PyTorch does", function->text));
  }

  void set_items(const std::vector<PickleValue*>& values) {
    if (values.size() % 2 != 0) refuse("a key has no value");
    if (on_foreign()) return;
    PickleValue* const dict = top(Kind::dict);
    budget_.take(values.size() * sizeof(PickleValue*));
    for (std::size_t i = 0; i < values.size(); i += 2) dict->pairs.emplace_back(values[i], values[i + 1]);
  }

  void persistent() {
    PickleValue* const tuple = pop();
    if (tuple->kind != Kind::tuple || tuple->items.size() < 5 || tuple->items[0]->text != "storage" ||
        (tuple->items[1]->kind != Kind::name && tuple->items[1]->kind != Kind::foreign) ||
        tuple->items[2]->kind != Kind::text || tuple->items[4]->kind != Kind::integer)
      refuse("a storage is not described as PyTorch does");
    PickleValue* const storage = make(Kind::storage);
    keep_items(storage, tuple->items);
    push(storage);
  }

  void long_integer() {
    const std::string_view digits = take(number<std::uint8_t>());
    if (digits.size() > sizeof(std::int64_t)) return push_foreign("an integer of more than 64 bits");
    std::int64_t value = !digits.empty() && (digits.back() & 0x80) != 0 ? -1 : 0;
    std::memcpy(&value, digits.data(), digits.size());
    push_integer(value);
  }

  void take_bytes(std::size_t count) {
    take(count);
    push_foreign("bytes");
  }

  void step(unsigned char opcode);

  Pickle& pickle_;
  const std::string_view bytes_;
  InputBudget& budget_;
  const std::string& where_;
  std::size_t at_ = 0;
  std::vector<PickleValue*> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint64_t, PickleValue*> memo_;
};

// The opcodes of pickletools.opcodes that PyTorch's state dicts and checkpoints have, and their equivalents
// of protocol 4.
void PickleReader::step(unsigned char opcode) {
  switch (opcode) {
    case 0x80:  // PROTO
      if (const int version = number<std::uint8_t>(); version < 2 || version > 5)
        refuse(fmt::format("its protocol is {}", version));
      return;
    case 0x95:  // FRAME
      take(8);
      return;
    case 'c': {  // GLOBAL
      const std::string module(line());
      return push_name(fmt::format("{}.{}", module, line()));
    }
    case 0x93: {  // STACK_GLOBAL
      const std::string name = top(Kind::text)->text;
      pop();
      const std::string module = top(Kind::text)->text;
      pop();
      return push_name(fmt::format("{}.{}", module, name));
    }
    case 'q':
      return remember(number<std::uint8_t>());
    case 'r':
      return remember(number<std::uint32_t>());
    case 0x94:  // MEMOIZE
      return remember(memo_.size());
    case 'h':
      return recall(number<std::uint8_t>());
    case 'j':
      return recall(number<std::uint32_t>());
    case '(':
      budget_.take(sizeof(std::size_t));
      return marks_.push_back(stack_.size());
    case 't': {
      const std::vector<PickleValue*> items = pop_to_mark();
      push(make(Kind::tuple));
      keep_items(stack_.back(), items);
      return;
    }
    case ')':
      return push_tuple(0);
    case 0x85:
    case 0x86:
    case 0x87:
      return push_tuple(opcode - 0x84U);
    case ']':
      return push(make(Kind::list));
    case 'a': {
      PickleValue* const item = pop();
      if (!on_foreign()) keep_items(top(Kind::list), {item});
      return;
    }
    case 'e': {
      const std::vector<PickleValue*> items = pop_to_mark();
      if (on_foreign()) return;
      keep_items(top(Kind::list), items);
      return;
    }
    case '}':
      return push(make(Kind::dict));
    case 's': {
      PickleValue* const value = pop();
      PickleValue* const key = pop();
      return set_items({key, value});
    }
    case 'u':
      return set_items(pop_to_mark());
    case 'X':
      return push_text(take(number<std::uint32_t>()));
    case 0x8c:  // SHORT_BINUNICODE
      return push_text(take(number<std::uint8_t>()));
    case 'N':
      return push(make(Kind::nothing));
    case 0x88:
    case 0x89:
      return push_integer(opcode == 0x88 ? 1 : 0);
    case 'J':
      return push_integer(number<std::int32_t>());
    case 'K':
      return push_integer(number<std::uint8_t>());
    case 'M':
      return push_integer(number<std::uint16_t>());
    case 0x8a:  // LONG1
      return long_integer();
    case 'G':  // BINFLOAT: nothing needs its value
      take(8);
      return push(make(Kind::real));
    case 'Q':
      return persistent();
    case 'R':
      return reduce();
    case 'b':  // BUILD: the attribute _metadata of a state dict, which is left out
      pop();
      if (!on_foreign()) top(Kind::dict);
      return;
    case 0x81: {  // NEWOBJ: an object of a class
      pop();
      PickleValue* const made = pop();
      if (made->kind != Kind::foreign) refuse("it has the opcode 0x81");
      return push_foreign(made->text);
    }
    case 'B':  // BINBYTES
      return take_bytes(number<std::uint32_t>());
    case 'C':  // SHORT_BINBYTES
      return take_bytes(number<std::uint8_t>());
    case 0x8f:  // EMPTY_SET
      return push_foreign("a set");
    case 0x90:  // ADDITEMS
      pop_to_mark();
      if (!on_foreign()) refuse("a value has another kind than its use");
      return;
    case 0x91:  // FROZENSET
      pop_to_mark();
      return push_foreign("a set");
    default:
      refuse(fmt::format("it has the opcode 0x{:02x}", opcode));
  }
}

Pickle::Pickle(std::string_view bytes, InputBudget& budget, const std::string& where) {
  root_ = PickleReader(*this, bytes, budget, where).run();
}

}  // namespace lockstep
