// SPDX-License-Identifier: Apache-2.0
// What the recorder does with captured stacks, as small as can be: an id for each
// new hash, and its definition. Everything is checked against what the stack truly is.
// Allocates only when it is made, so that signal handlers may use it.

#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "unwind/stack_memo.h"
#include "unwind/walk.h"

namespace malloscope::unwind {

class Ledger {
 public:
  explicit Ledger(uint32_t ids = 1 << 16, size_t keys = 1 << 21)
      : slots_(ids * 2), definitions_(ids), keys_(keys), decoded_(kMaxFrames) {
    definitions_.resize(1);
  }

  // Whether the capture, by its id or by its definition, is exactly `truth` (root
  // first). If so, it is given an id, unless `drop`.
  bool check(const Captured& captured, std::span<const uintptr_t> truth, StackMemo* memo,
             bool drop = false) {
    if (is_full() && memo) {
      memo->clear();
      std::fill(slots_.begin(), slots_.end(), Slot{});
      definitions_.resize(1);
      keys_used_ = 0;
      if (captured.id != StackId::kNone || captured.kept > 0) return true;
    }
    if (captured.id != StackId::kNone)
      return definitions_[raw(captured.id)].generation == captured.generation &&
             equal(decode(raw(captured.id)), truth);
    if (captured.hash == 0 || captured.kept + captured.fresh.size() != truth.size()) return false;
    auto fresh = truth.subspan(captured.kept);
    if (!equal(captured.fresh, fresh)) return false;
    if (captured.kept > 0) {
      auto owner = decode(raw(captured.owner));
      if (owner.size() < captured.kept) return false;
      if (!equal(owner.first(captured.kept), truth.first(captured.kept))) return false;
    }
    if (!memo || drop) return true;
    Slot& slot = find(captured.hash);
    if (slot.id == 0) {
      slot = {captured.hash, static_cast<uint32_t>(definitions_.size())};
      memcpy(&keys_[keys_used_], captured.fresh.data(), captured.fresh.size_bytes());
      definitions_.push_back({raw(captured.owner), captured.kept, keys_used_,
                              static_cast<uint32_t>(captured.fresh.size()), captured.generation});
      keys_used_ += captured.fresh.size();
    } else if (!equal(decode(slot.id), truth)) {
      return false;
    }
    memo->name(StackId{slot.id});
    return true;
  }

  StackFinder finder() {
    auto find = [](void* ledger, uint64_t hash) {
      return StackId{static_cast<Ledger*>(ledger)->find(hash).id};
    };
    return {find, this};
  }

  size_t stacks() const { return definitions_.size() - 1; }

  std::span<const uintptr_t> decode(uint32_t id) {
    uint32_t end = UINT32_MAX, size = 0;
    for (; id != 0 && end > 0; id = definitions_[id].owner) {
      const Definition& d = definitions_[id];
      uint32_t whole = d.kept + d.count;
      if (end == UINT32_MAX) end = size = whole;
      if (end > d.kept) {
        memcpy(&decoded_[d.kept], &keys_[d.keys], (end - d.kept) * sizeof(uintptr_t));
        end = d.kept;
      }
    }
    return {decoded_.data(), size};
  }

  static bool equal(std::span<const uintptr_t> a, std::span<const uintptr_t> b) {
    return a.size() == b.size() && memcmp(a.data(), b.data(), a.size_bytes()) == 0;
  }

 private:
  struct Slot {
    uint64_t hash = 0;
    uint32_t id = 0;
  };
  struct Definition {
    uint32_t owner, kept;
    size_t keys;
    uint32_t count, generation;
  };

  bool is_full() const {
    return definitions_.size() == definitions_.capacity() || keys_.size() - keys_used_ < kMaxFrames;
  }
  Slot& find(uint64_t hash) {
    size_t i = hash % slots_.size();
    while (slots_[i].id != 0 && slots_[i].hash != hash) i = (i + 1) % slots_.size();
    return slots_[i];
  }

  std::vector<Slot> slots_;
  std::vector<Definition> definitions_;
  std::vector<uintptr_t> keys_, decoded_;
  size_t keys_used_ = 0;
};

}  // namespace malloscope::unwind
