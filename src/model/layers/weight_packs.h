// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The packed weights of a layer's primitives. Primitives with the same packing share one buffer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/buffer.h"
#include "model/layer.h"

namespace lockstep {

class WeightPacks {
 public:
  /// Returns the number of the pack that the primitive uses, and makes it if there is none yet. Its weights
  /// begin `offset` elements after those that refresh() gets. The primitive must live as long as this object.
  std::size_t add(const PrepareContext& context, const LinearPrimitive& primitive, std::int64_t offset = 0) {
    std::size_t pack = 0;
    while (pack < packs_.size() &&
           (packs_[pack].offset != offset || !primitive.same_packing(*packs_[pack].owner)))
      ++pack;
    if (pack == packs_.size())
      packs_.push_back({&primitive, offset, Buffer(context.device, primitive.packed_bytes())});
    note(primitive);
    return pack;
  }
  /// Adds a primitive to widened(). A primitive without a pack may be added too.
  void note(const LinearPrimitive& primitive) {
    if (widened_.empty()) widened_ = primitive.widened();
  }
  /// See LayerTraits::widened_products.
  std::string_view widened() const { return widened_; }
  void refresh(const Lane& lane, const float* weights) const {
    for (const Pack& pack : packs_)
      if (pack.buffer.size_bytes() > 0) pack.owner->pack(lane, weights + pack.offset, pack.buffer.data());
  }
  const void* operator[](std::size_t pack) const { return packs_[pack].buffer.data(); }

 private:
  struct Pack {
    const LinearPrimitive* owner;
    std::int64_t offset;
    Buffer buffer;
  };
  std::vector<Pack> packs_;
  std::string widened_;
};

}  // namespace lockstep
