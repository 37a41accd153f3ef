// The space in which a pointwise call walks its operands. Programs of equal coalesced shape have
// equal text, and so share one executable: (2,3), (3,2) and (6) are one program.
#include <algorithm>

#include "exec/call_lowering.h"
#include "exec/view_emit.h"
#include "shape/view.h"

namespace tpu::exec {

using hlo::Value;

namespace {

shape::View ViewOf(const Call& call, const TensorArg& t) {
  const DimsView sizes = call.Sizes(t), strides = call.Strides(t);
  return {Dims(sizes.begin(), sizes.end()), Dims(strides.begin(), strides.end()), t.offset};
}

// Strides equal but for dimensions of size 1, whose strides mean nothing.
bool SameStrides(DimsView sizes, DimsView a, DimsView b) {
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] != 1 && a[d] != b[d]) return false;
  }
  return true;
}

}  // namespace

void CallLowering::ChoosePointwiseSpace() {
  common_.clear();
  for (const TensorArg& t : call_.tensors) {
    if (t.storage == nullptr) continue;
    if (!BroadcastShapes(common_, call_.Sizes(t), &common_)) {
      Fail(InvalidArgument("shapes don't broadcast: ", call_.Describe()));
      return;
    }
  }
  for (const hlo::Type& e : expected_types_) {
    if (e.dims != common_) {  // a row that is no plain broadcast
      space_ = Space::kLogical;
      iteration_ = common_;
      return;
    }
  }
  if (AllFlat(common_)) {
    space_ = Space::kFlat;
    iteration_ = {NumElements(common_)};
  } else if (AllContiguous(common_)) {
    space_ = Space::kMerged;
    MergeDims(common_);
  } else {
    space_ = Space::kLogical;
    iteration_ = common_;
  }
}

// Every operand of more than one element has the common sizes, the same strides as the others, and
// fills its storage; new results will too.
bool CallLowering::AllFlat(const Dims& common) const {
  const Dims* strides = nullptr;
  Dims first;
  const int64_t numel = NumElements(common);
  for (const TensorArg& t : call_.tensors) {
    if (t.storage == nullptr) continue;
    const DimsView sizes = call_.Sizes(t);
    if (NumElements(sizes) == 1 && numel != 1) continue;
    if (!std::ranges::equal(sizes, common)) return false;
    if (strides == nullptr) {
      const DimsView s = call_.Strides(t);
      first.assign(s.begin(), s.end());
      strides = &first;
      if (!t.covers && !shape::CoversDensely(ViewOf(call_, t), numel)) return false;
    } else if (!SameStrides(common, *strides, call_.Strides(t))) {
      return false;
    }
    if (t.offset != 0 || static_cast<int64_t>(t.storage->nbytes()) != numel * ItemSize(t.dtype)) {
      return false;
    }
  }
  if (strides == nullptr) first = RowMajorStrides(common);
  for (const ResultSpec& r : *expected_) {
    if (!SameStrides(common, first, r.strides)) return false;
  }
  return expected_->empty() ? SameStrides(common, first, RowMajorStrides(common)) ||
                                  call_.overload->targets.empty() || call_.overload->targets[0] >= 0
                            : true;
}

bool CallLowering::AllContiguous(const Dims& common) const {
  for (const TensorArg& t : call_.tensors) {
    if (t.storage != nullptr && !t.covers && NumElements(call_.Sizes(t)) != 1) return false;
  }
  const Dims row_major = RowMajorStrides(common);
  for (const ResultSpec& r : *expected_) {
    if (!SameStrides(common, row_major, r.strides)) return false;
  }
  return true;
}

// Adjacent dimensions merge where every operand either spans both or broadcasts along both.
void CallLowering::MergeDims(const Dims& common) {
  const size_t rank = common.size();
  const auto pattern = [&](size_t d) {
    std::vector<bool> p;
    for (const TensorArg& t : call_.tensors) {
      if (t.storage == nullptr || NumElements(call_.Sizes(t)) == 1) continue;
      const DimsView sizes = call_.Sizes(t);
      const size_t lead = rank - sizes.size();
      p.push_back(d >= lead && sizes[d - lead] == common[d]);
    }
    return p;
  };
  iteration_.clear();
  group_.assign(rank, 0);
  std::vector<bool> last;
  for (size_t d = 0; d < rank; ++d) {
    if (common[d] == 1) {
      group_[d] = iteration_.empty() ? 0 : iteration_.size() - 1;
      continue;
    }
    const std::vector<bool> p = pattern(d);
    if (iteration_.empty() || p != last) {
      iteration_.push_back(common[d]);
    } else {
      iteration_.back() *= common[d];
    }
    last = p;
    group_[d] = iteration_.size() - 1;
  }
  if (iteration_.empty()) iteration_ = {1};
}

Value CallLowering::ReadPointwise(uint32_t tensor) {
  const TensorArg& t = call_.tensors[tensor];
  const DimsView sizes = call_.Sizes(t);
  if (space_ == Space::kLogical) return fn_->BroadcastTo(ReadLogical(tensor), iteration_);
  if (NumElements(sizes) == 1) {
    return fn_->BroadcastInDim(fn_->Reshape(ReadLogical(tensor), Dims{}), iteration_, Dims{});
  }
  // The conj and neg bits act on elements, so they may be applied in storage order.
  return Spread(ApplyBits(ReadBase(tensor), t), sizes);
}

// A storage's contents, in order, as the iteration space.
Value CallLowering::Spread(Value base, DimsView sizes) {
  if (space_ == Space::kFlat) return fn_->Reshape(base, iteration_);
  Dims merged(iteration_.size(), 1);
  const size_t lead = common_.size() - sizes.size();
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] != 1) merged[group_[d + lead]] *= sizes[d];
  }
  return fn_->BroadcastTo(fn_->Reshape(base, merged), iteration_);
}

}  // namespace tpu::exec
