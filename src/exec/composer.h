// Composer: lowers one call, or a sequence of calls that read each other's results, into one
// StableHLO program, and keeps the recipe by which its arguments are found at run time.
// What it is not: an executor. Strict composes one call, fuse a trace, record a graph.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ref.h"
#include "exec/call.h"
#include "exec/key.h"
#include "hlo/hlo.h"
#include "runtime/value.h"

namespace tpu::exec {

// A result as the front end sees it.
struct ResultSpec {
  DType dtype = DType::kInvalid;
  Dims sizes, strides;
  size_t nbytes = 0;              // of its storage
  runtime::ValueTypeRef type;     // of its contents
  std::optional<int64_t> number;  // a result that is no tensor (attention's max_q): its value
};

// A run-time argument of a program.
struct ParamSource {
  enum class Kind : uint8_t { kSlot, kWords, kIndexRecord };
  Kind kind = Kind::kSlot;
  int slot = -1;
  bool donates = false;  // its memory may go to an output
};

// One or more 32-bit words of the packed argument.
struct WordSource {
  enum class Kind : uint8_t {
    kNumber,      // argument `index` of the call, converted to `dtype`
    kReadStart,   // start `k` of tensor `index`'s read plan
    kWriteStart,  // ... write plan
    kSeed,        // the call's seed and offset: four words
    kChecks,      // `index`: the number of the program's table of checks
    kSite,        // the line of the call
  };
  Kind kind;
  int call = 0;
  int index = 0;
  int k = 0;
  DType dtype = DType::kInvalid;
};

struct OutputSource {
  enum class Kind : uint8_t { kValue, kIndexRecord };
  Kind kind = Kind::kValue;
  int slot = -1;  // the composer's slot whose contents this is
  runtime::ValueTypeRef type;
};

struct Recipe : RefCounted {
  std::string text;
  std::vector<ParamSource> params;
  std::vector<WordSource> words;
  uint32_t num_words = 0;  // of the packed argument, padding included
  std::vector<OutputSource> outputs;
  int64_t result_bytes = 0;  // of outputs that need new memory
  int unset_read = -1;       // a tensor of the (last) call that reads memory never written
};

// Named checks of a program: what a record's numbers mean.
struct CheckInfo {
  std::string op, argument;
  int64_t bound = 0, dim = 0;
  // Of a value that is no index: the rule it breaks. The record has it as float32 if `real`.
  std::string rule = {};
  bool real = false;
  auto operator<=>(const CheckInfo&) const = default;
};
// The number of a table; equal ones share it.
int32_t RegisterChecks(std::vector<CheckInfo> checks);
// The number of the user's line, for errors that come later than the call.
uint32_t SiteOf(const std::string& location);
// The error for a record {set, table, check, position, value low, value high, site, 0}.
Status DescribeIndexRecord(const std::array<int32_t, runtime::Device::kIndexRecordWords>& record);

class Composer {
 public:
  // `word_capacity`: the size of the packed argument, fixed from the start because its type is part
  // of the text. Where OutOfWords() after an Add fails, compose again with twice as many.
  Composer(const runtime::Device* device, int word_capacity)
      : device_(device), word_capacity_(word_capacity) {
    if (!device->capabilities().native_64bit) fn_.Emulate64Bit();
  }
  bool OutOfWords() const { return words_used_ > word_capacity_; }

  // A storage's contents that come from outside (or zeros, if base.unset). Gives its slot.
  int AddSlot(const Base& base);

  // A slot of its own with the same contents. Writing one leaves the other as it was.
  int CopySlot(int slot);

  // Lowers `call`; its tensors' slots are `slot_of[tensor.slot]`. `expected`: the fresh results, as
  // the meta kernel gives them; empty = take the lowering's own and fill it in. On return `fresh`
  // holds the slots of the new results, and the slots of written storages have new contents.
  Status Add(const Call& call, const std::vector<int>& slot_of, std::vector<ResultSpec>* expected,
             std::vector<int>* fresh);

  // Makes the program that returns the contents of `outputs`. New contents of a storage take the
  // memory of its old ones where the types agree; each launch says what may not be taken.
  Result<Ref<Recipe>> Finish(const std::vector<int>& outputs);

  bool Written(int slot) const { return slots_[size_t(slot)].written; }

 private:
  friend class CallLowering;
  struct SlotState {
    Base base;
    hlo::Value parameter;  // invalid: not read
    hlo::Value current;    // invalid: the parameter's, not read yet
    int param_index = -1;
    int origin = -1;  // of a copy: the slot whose parameter it reads
    bool written = false;
    runtime::ValueTypeRef type;  // of the contents
  };
  hlo::Value Read(int slot);  // the base, as a value
  void Write(int slot, hlo::Value base, runtime::ValueTypeRef type);
  // The packed words of `source` (`count` of them), each ui32 and scalar.
  hlo::Values Words(const WordSource& source, int count);
  hlo::Value IndexRecord();

  const runtime::Device* const device_;
  const int word_capacity_;
  hlo::Function fn_;
  std::vector<SlotState> slots_;
  std::vector<ParamSource> params_;
  std::vector<WordSource> words_;
  int words_used_ = 0;
  hlo::Value words_param_;
  hlo::Value record_, record_param_;
  int record_param_index_ = -1;
  hlo::Value check_word_;  // the number of the table of checks, known at the end
  std::vector<CheckInfo> checks_;
  int num_calls_ = 0;
  int unset_read_ = -1;
};

// The 32-bit words of `number` as `dtype`, appended.
void AppendNumberWords(const Number& number, DType dtype, std::vector<uint32_t>* words);
// How many words a number of this type takes.
int NumberWords(DType dtype);

}  // namespace tpu::exec
