// SPDX-License-Identifier: Apache-2.0
// The global operators new and delete. They are defined under their linker names,
// so that this file needs no C++ runtime and the compiler assumes nothing.
//
// A throwing new that fails leaves our frame by an exception, which code without
// a C++ runtime cannot catch; but the unwinder asks the personality routine of
// every frame that the exception passes, and ours only looks: in the search phase
// it records the failed call, and lets the exception go on. An inner hook's exception is the
// outer one's to tell, who may catch it.

#include <stddef.h>
#include <unwind.h>

#include "base/attributes.h"
#include "record/real.h"
#include "record/recorder.h"

using namespace malloscope::record;

extern "C" [[gnu::visibility("hidden"), gnu::used]] _Unwind_Reason_Code malloscope_new_threw(
    int, _Unwind_Action actions, _Unwind_Exception_Class, _Unwind_Exception*, _Unwind_Context*) {
  ThreadState* t = thread;
  if ((actions & _UA_SEARCH_PHASE) && t->outer > ThreadState::kIdle && !t->recording) {
    if (t->inner_hooks > 0) {
      --t->inner_hooks;
      return _URC_CONTINUE_UNWIND;
    }
    record_block_of_outer(t, nullptr, t->size);
    // The hook will not come back to say that it has left.
    leave(t);
  }
  return _URC_CONTINUE_UNWIND;
}

// Attaches the routine to the function it stands in: encoding 0x1b is a relative address.
#define NOTICE_EXCEPTIONS asm volatile(".cfi_personality 0x1b, malloscope_new_threw")

namespace {

template <typename Function, typename... Args>
void* call_new(Operator which, size_t size, Args... args) {
  if (auto function = reinterpret_cast<Function>(real_operator(which))) return function(args...);
  return real.malloc(size ? size : 1);
}

template <typename Function, typename... Args>
void call_delete(Operator which, void* block, Args... args) {
  if (auto function = reinterpret_cast<Function>(real_operator(which))) return function(args...);
  real.free(block);
}

using New = void* (*)(size_t);
using NewNothrow = void* (*)(size_t, const void*);
using NewAligned = void* (*)(size_t, size_t);
using NewAlignedNothrow = void* (*)(size_t, size_t, const void*);
using Delete = void (*)(void*);
using DeleteSized = void (*)(void*, size_t);
using DeleteNothrow = void (*)(void*, const void*);
using DeleteSizedAligned = void (*)(void*, size_t, size_t);
using DeleteAlignedNothrow = void (*)(void*, size_t, const void*);

}  // namespace

#define DEFINE_NEW(symbol, op, which)                                            \
  MSCOPE_EXPORT void* symbol(size_t size) {                                      \
    NOTICE_EXCEPTIONS;                                                           \
    return allocate(Op::op, MSCOPE_FRAME, size,                                  \
                    [=] { return call_new<New>(Operator::which, size, size); }); \
  }
#define DEFINE_NEW_NOTHROW(symbol, op, which)                                                    \
  MSCOPE_EXPORT void* symbol(size_t size, const void* nothrow) {                                 \
    return allocate(Op::op, MSCOPE_FRAME, size,                                                  \
                    [=] { return call_new<NewNothrow>(Operator::which, size, size, nothrow); }); \
  }
#define DEFINE_NEW_ALIGNED(symbol, op, which)                                         \
  MSCOPE_EXPORT void* symbol(size_t size, size_t alignment) {                         \
    NOTICE_EXCEPTIONS;                                                                \
    return allocate(                                                                  \
        Op::op, MSCOPE_FRAME, size,                                                   \
        [=] { return call_new<NewAligned>(Operator::which, size, size, alignment); }, \
        Alignment(alignment));                                                        \
  }
#define DEFINE_NEW_ALIGNED_NOTHROW(symbol, op, which)                                          \
  MSCOPE_EXPORT void* symbol(size_t size, size_t alignment, const void* nothrow) {             \
    return allocate(                                                                           \
        Op::op, MSCOPE_FRAME, size,                                                            \
        [=] {                                                                                  \
          return call_new<NewAlignedNothrow>(Operator::which, size, size, alignment, nothrow); \
        },                                                                                     \
        Alignment(alignment));                                                                 \
  }

DEFINE_NEW(_Znwm, kNew, kNew)
DEFINE_NEW(_Znam, kNewArray, kNewArray)
DEFINE_NEW_NOTHROW(_ZnwmRKSt9nothrow_t, kNew, kNewNothrow)
DEFINE_NEW_NOTHROW(_ZnamRKSt9nothrow_t, kNewArray, kNewArrayNothrow)
DEFINE_NEW_ALIGNED(_ZnwmSt11align_val_t, kNewAligned, kNewAligned)
DEFINE_NEW_ALIGNED(_ZnamSt11align_val_t, kNewArrayAligned, kNewArrayAligned)
DEFINE_NEW_ALIGNED_NOTHROW(_ZnwmSt11align_val_tRKSt9nothrow_t, kNewAligned, kNewAlignedNothrow)
DEFINE_NEW_ALIGNED_NOTHROW(_ZnamSt11align_val_tRKSt9nothrow_t, kNewArrayAligned,
                           kNewArrayAlignedNothrow)

// The forms of delete differ only in what else they are told about the block.
#define DEFINE_DELETE(symbol, op, which, Function, PARAMETERS, ...)               \
  MSCOPE_EXPORT void symbol PARAMETERS {                                          \
    release(Op::op, MSCOPE_FRAME, block,                                          \
            [=] { call_delete<Function>(Operator::which, block, __VA_ARGS__); }); \
  }
DEFINE_DELETE(_ZdlPv, kDelete, kDelete, Delete, (void* block), block)
DEFINE_DELETE(_ZdaPv, kDeleteArray, kDeleteArray, Delete, (void* block), block)
DEFINE_DELETE(_ZdlPvm, kDelete, kDeleteSized, DeleteSized, (void* block, size_t size), block, size)
DEFINE_DELETE(_ZdaPvm, kDeleteArray, kDeleteArraySized, DeleteSized, (void* block, size_t size),
              block, size)
DEFINE_DELETE(_ZdlPvRKSt9nothrow_t, kDelete, kDeleteNothrow, DeleteNothrow,
              (void* block, const void* nothrow), block, nothrow)
DEFINE_DELETE(_ZdaPvRKSt9nothrow_t, kDeleteArray, kDeleteArrayNothrow, DeleteNothrow,
              (void* block, const void* nothrow), block, nothrow)
DEFINE_DELETE(_ZdlPvSt11align_val_t, kDeleteAligned, kDeleteAligned, DeleteSized,
              (void* block, size_t alignment), block, alignment)
DEFINE_DELETE(_ZdaPvSt11align_val_t, kDeleteArrayAligned, kDeleteArrayAligned, DeleteSized,
              (void* block, size_t alignment), block, alignment)
DEFINE_DELETE(_ZdlPvmSt11align_val_t, kDeleteAligned, kDeleteSizedAligned, DeleteSizedAligned,
              (void* block, size_t size, size_t alignment), block, size, alignment)
DEFINE_DELETE(_ZdaPvmSt11align_val_t, kDeleteArrayAligned, kDeleteArraySizedAligned,
              DeleteSizedAligned, (void* block, size_t size, size_t alignment), block, size,
              alignment)
DEFINE_DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, kDeleteAligned, kDeleteAlignedNothrow,
              DeleteAlignedNothrow, (void* block, size_t alignment, const void* nothrow), block,
              alignment, nothrow)
DEFINE_DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, kDeleteArrayAligned, kDeleteArrayAlignedNothrow,
              DeleteAlignedNothrow, (void* block, size_t alignment, const void* nothrow), block,
              alignment, nothrow)
