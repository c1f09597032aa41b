// SPDX-License-Identifier: Apache-2.0
// An array that grows without moving what it holds: in pieces of equal size. A vector that grows
// needs three times its old memory for a moment, and keeps up to twice of what it needs. For the
// tools: it takes from the heap.

#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace malloscope {

template <typename T>
class Pieces {
 public:
  Pieces() = default;
  Pieces(const Pieces& other) {
    grow_to(other.size());
    for (size_t i = 0; i < size_; ++i) (*this)[i] = other[i];
  }
  Pieces& operator=(const Pieces& other) { return *this = Pieces(other); }
  Pieces(Pieces&& other) noexcept { *this = std::move(other); }
  Pieces& operator=(Pieces&& other) noexcept {
    pieces_ = std::exchange(other.pieces_, {});
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  T& operator[](size_t i) { return pieces_[i / kPiece][i % kPiece]; }
  const T& operator[](size_t i) const { return pieces_[i / kPiece][i % kPiece]; }
  size_t size() const { return size_; }

  // With new elements as T() makes them.
  void grow_to(size_t size) {
    while (pieces_.size() * kPiece < size) pieces_.push_back(std::make_unique<T[]>(kPiece));
    if (size > size_) size_ = size;
  }
  T& push_back(T value) {
    grow_to(size_ + 1);
    return (*this)[size_ - 1] = std::move(value);
  }
  void clear() {
    pieces_ = std::vector<std::unique_ptr<T[]>>();
    size_ = 0;
  }

 private:
  static constexpr size_t kPiece = 4096;
  std::vector<std::unique_ptr<T[]>> pieces_;
  size_t size_ = 0;
};

}  // namespace malloscope
