// CallLowering: the one implementation of ops::Lowering: a call's arguments as values of a program,
// pointwise iteration spaces, conversions, checks, and where results go.
#pragma once

#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "exec/composer.h"
#include "ops/lowering.h"

namespace tpu::exec {

class CallLowering : public ops::Lowering {
 public:
  CallLowering(Composer* composer, const Call& call, const std::vector<int>& slot_of,
               int call_number, std::vector<ResultSpec>* expected);
  Status Run(std::vector<int>* fresh);

  hlo::Value TensorAs(std::string_view name, DType dtype) override;
  bool Has(std::string_view name) const override;
  DType TensorType(std::string_view name) const override;
  Dims TensorDims(std::string_view name) const override;
  hlo::Values Tensors(std::string_view name) override;
  size_t NumTensors(std::string_view name) const override;
  hlo::Values Operands() override;
  bool ChannelsLast(std::string_view name) const override;
  bool Contiguous(std::string_view name) const override;
  int64_t Int(std::string_view name) const override;
  bool Bool(std::string_view name) const override;
  Dims Ints(std::string_view name) const override;
  std::vector<double> Floats(std::string_view name) const override;
  std::string_view String(std::string_view name) const override;
  std::optional<DType> Type(std::string_view name) const override;
  double StaticNumber(std::string_view name) const override;
  hlo::Value Number(std::string_view name, DType dtype) override;
  DType NumberType(std::string_view name) const override;
  DType Promoted() const override { return promoted_; }
  DType ComputeType() const override { return compute_; }
  const hlo::Type* Expected(size_t i) const override;
  Bits RandomBits(int64_t n, int draw) override;
  hlo::Value CheckIndex(hlo::Value index, int64_t bound, std::string_view argument, int64_t dim,
                        bool wrap, hlo::Value ignore) override;
  void CheckValue(hlo::Value bad, hlo::Value value, std::string_view argument,
                  std::string_view rule) override;

 private:
  // How a pointwise call walks its operands.
  enum class Space : uint8_t {
    kNone,     // not pointwise
    kFlat,     // all operands lie in memory alike: one dimension, in storage order
    kMerged,   // contiguous operands that broadcast: merged dimensions
    kLogical,  // the common shape
  };

  int ArgIndex(std::string_view name) const;  // -1: no such argument
  const Arg& Find(std::string_view name) const;
  void ChoosePointwiseSpace();
  bool AllFlat(const Dims& common) const;
  bool AllContiguous(const Dims& common) const;
  void MergeDims(const Dims& common);
  void ChooseTypes();
  hlo::Value ReadBase(uint32_t tensor);     // the storage's contents in the tensor's dtype
  hlo::Value ReadLogical(uint32_t tensor);  // in the tensor's own sizes and dtype
  hlo::Value ApplyBits(hlo::Value v, const TensorArg& t);
  hlo::Value ReadPointwise(uint32_t tensor);  // in the iteration space, own dtype
  hlo::Value Spread(hlo::Value base, DimsView sizes);
  hlo::Value OperandOf(const Arg& arg, int index, DType dtype);
  hlo::Value NumberValue(int arg_index, DType dtype);
  hlo::Value Regular();
  void Record(hlo::Value bad, hlo::Value value, CheckInfo info);
  Status Fresh(hlo::Value value, size_t result, std::vector<int>* fresh);
  Status WriteTarget(hlo::Value value, uint32_t tensor);

  Composer* const c_;
  const Call& call_;
  const std::vector<int>& slot_of_;
  const int number_;
  std::vector<ResultSpec>* const expected_;
  std::vector<hlo::Type> expected_types_;

  Space space_ = Space::kNone;
  Dims iteration_;             // the space's shape
  Dims common_;                // the broadcast logical shape
  std::vector<size_t> group_;  // kMerged: merged dimension of each common dimension
  DType promoted_ = DType::kInvalid, compute_ = DType::kInvalid;
  std::map<std::pair<int, DType>, hlo::Value> numbers_;
  std::map<uint32_t, hlo::Value> reads_;
  hlo::Values seed_words_;
  hlo::Value site_;  // the word of the call's line, where it has checks
};

}  // namespace tpu::exec
