// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// An address of activations together with their element type: float32 or one of the 16-bit types
// (core/half.h). Data and ConstData own nothing. A kernel that takes Data supports all three types. A kernel
// that takes float* converts from Data, which must then be float32 or null; any other type is a bug.
//
// Files compiled per instruction-set level (kernels/isa.h) include this header, so every function is always
// inlined.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"

namespace lockstep {

/// Throws Error(bug).
[[noreturn]] void throw_wrong_type(DType has, DType wanted);

#define LOCKSTEP_INLINED [[gnu::always_inline]]

class Data {
 public:
  LOCKSTEP_INLINED Data() = default;
  LOCKSTEP_INLINED Data(std::nullptr_t) {}
  LOCKSTEP_INLINED Data(float* address) : address_(address) {}
  LOCKSTEP_INLINED Data(BFloat16* address) : address_(address), type_(DType::bf16) {}
  LOCKSTEP_INLINED Data(Float16* address) : address_(address), type_(DType::f16) {}
  LOCKSTEP_INLINED Data(void* address, DType type) : address_(address), type_(type) {}

  LOCKSTEP_INLINED void* address() const { return address_; }
  LOCKSTEP_INLINED DType type() const { return type_; }
  LOCKSTEP_INLINED explicit operator bool() const { return address_ != nullptr; }
  LOCKSTEP_INLINED friend bool operator==(const Data& v, std::nullptr_t) { return v.address_ == nullptr; }

  template <typename T>
  LOCKSTEP_INLINED T* as() const {
    if (address_ != nullptr && type_ != dtype_of<T>) throw_wrong_type(type_, dtype_of<T>);
    return static_cast<T*>(address_);
  }
  LOCKSTEP_INLINED float* f32() const { return as<float>(); }
  /// The address `elements` elements further on. Only for the types of activations.
  LOCKSTEP_INLINED Data offset(std::int64_t elements) const {
    return {static_cast<char*>(address_) + elements * (type_ == DType::f32 ? 4 : 2), type_};
  }
  LOCKSTEP_INLINED operator float*() const { return f32(); }

 private:
  void* address_ = nullptr;
  DType type_ = DType::f32;
};

class ConstData {
 public:
  LOCKSTEP_INLINED ConstData() = default;
  LOCKSTEP_INLINED ConstData(std::nullptr_t) {}
  LOCKSTEP_INLINED ConstData(const float* address) : address_(address) {}
  LOCKSTEP_INLINED ConstData(const BFloat16* address) : address_(address), type_(DType::bf16) {}
  LOCKSTEP_INLINED ConstData(const Float16* address) : address_(address), type_(DType::f16) {}
  LOCKSTEP_INLINED ConstData(const void* address, DType type) : address_(address), type_(type) {}
  LOCKSTEP_INLINED ConstData(const Data& data) : address_(data.address()), type_(data.type()) {}

  LOCKSTEP_INLINED const void* address() const { return address_; }
  LOCKSTEP_INLINED DType type() const { return type_; }
  LOCKSTEP_INLINED explicit operator bool() const { return address_ != nullptr; }
  LOCKSTEP_INLINED friend bool operator==(const ConstData& v, std::nullptr_t) {
    return v.address_ == nullptr;
  }

  template <typename T>
  LOCKSTEP_INLINED const T* as() const {
    if (address_ != nullptr && type_ != dtype_of<T>) throw_wrong_type(type_, dtype_of<T>);
    return static_cast<const T*>(address_);
  }
  LOCKSTEP_INLINED const float* f32() const { return as<float>(); }
  LOCKSTEP_INLINED ConstData offset(std::int64_t elements) const {
    return {static_cast<const char*>(address_) + elements * (type_ == DType::f32 ? 4 : 2), type_};
  }
  LOCKSTEP_INLINED operator const float*() const { return f32(); }

 private:
  const void* address_ = nullptr;
  DType type_ = DType::f32;
};

/// Calls body(T{}) with T = float, BFloat16 or Float16 for the given type. Any other type is a bug.
template <typename Body>
LOCKSTEP_INLINED inline void with_type(DType type, const Body& body) {
  switch (type) {
    case DType::f32:
      return body(float{});
    case DType::bf16:
      return body(BFloat16{});
    case DType::f16:
      return body(Float16{});
    default:
      throw_wrong_type(type, DType::f32);
  }
}

/// The address of `data`, whose type must be `type` (anything else is a bug).
LOCKSTEP_INLINED inline const void* address_in(DType type, const ConstData& data) {
  if (data.type() != type) throw_wrong_type(data.type(), type);
  return data.address();
}
LOCKSTEP_INLINED inline void* address_in(DType type, const Data& data) {
  if (data.type() != type) throw_wrong_type(data.type(), type);
  return data.address();
}

}  // namespace lockstep
