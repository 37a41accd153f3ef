// OverlapsItself: whether two index tuples of a strided view reach one element, decided exactly.
//
// They do if and only if some d, not all 0, with |d_k| < size_k has sum d_k * stride_k = 0.
// Dimensions that can take part in no such sum are removed first; in the views that people make
// this removes all of them. What is left is searched, two dimensions at a time in closed form: the
// search visits fewer tuples than the view has elements. Addresses are expected to fit into 64
// bits.
#include <algorithm>
#include <numeric>

#include "shape/view.h"

namespace tpu::shape {
namespace {

using Wide = __int128;  // sums of products of 64-bit numbers

struct Term {
  int64_t bound;  // |d| <= bound
  int64_t stride;
  Wide reach() const { return Wide{bound} * stride; }
};

Wide FloorDiv(Wide a, Wide b) { return a / b - (a % b != 0 && a < 0 ? 1 : 0); }
Wide CeilDiv(Wide a, Wide b) { return -FloorDiv(-a, b); }

// A term is balanced by the others only if it is a multiple of their common divisor and within
// their reach.
bool MayTakePart(const std::vector<Term>& terms, size_t k) {
  int64_t divisor = 0;
  Wide others = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (i == k) continue;
    divisor = std::gcd(divisor, terms[i].stride);
    others += terms[i].reach();
  }
  if (divisor == 0) return false;
  const int64_t least = divisor / std::gcd(divisor, terms[k].stride);
  return terms[k].bound >= least && Wide{least} * terms[k].stride <= others;
}

void RemoveIdleTerms(std::vector<Term>* terms) {
  for (size_t k = 0; k < terms->size();) {
    if (MayTakePart(*terms, k)) {
      ++k;
    } else {
      terms->erase(terms->begin() + static_cast<std::ptrdiff_t>(k));
      k = 0;
    }
  }
}

bool PairOverlaps(const Term& a, const Term& b) {
  const int64_t divisor = std::gcd(a.stride, b.stride);
  return b.stride / divisor <= a.bound && a.stride / divisor <= b.bound;
}

// More tuples than places. May say false where there are so many tuples that their number is
// unknown.
bool MoreTuplesThanPlaces(const std::vector<Term>& terms) {
  int64_t divisor = 0;
  Wide reach = 0;
  for (const Term& term : terms) {
    divisor = std::gcd(divisor, term.stride);
    reach += term.reach();
  }
  const Wide places = reach / divisor + 1;
  Wide tuples = 1;
  for (const Term& term : terms) {
    tuples *= Wide{term.bound} + 1;
    if (tuples > places) return true;
  }
  return false;
}

// The inverse of a modulo m > 1, for coprime a and m.
int64_t Inverse(int64_t a, int64_t m) {
  Wide r0 = m, r1 = a % m, x0 = 0, x1 = 1;
  while (r1 != 0) {
    const Wide q = r0 / r1;
    std::swap(r0 -= q * r1, r1);
    std::swap(x0 -= q * x1, x1);
  }
  return static_cast<int64_t>(x0 < 0 ? x0 + m : x0);
}

class Search {
 public:
  // Expects at least two terms, no two of which overlap alone.
  explicit Search(std::vector<Term> terms) : terms_(std::move(terms)) {
    std::sort(terms_.begin(), terms_.end(),
              [](const Term& a, const Term& b) { return a.bound < b.bound; });
    reach_.assign(terms_.size() + 1, 0);
    divisor_.assign(terms_.size() + 1, 0);
    for (size_t k = terms_.size(); k-- > 0;) {
      reach_[k] = reach_[k + 1] + terms_[k].reach();
      divisor_[k] = std::gcd(divisor_[k + 1], terms_[k].stride);
    }
    a_ = terms_[terms_.size() - 2];
    b_ = terms_[terms_.size() - 1];
    const int64_t divisor = std::gcd(a_.stride, b_.stride);
    a_.stride /= divisor;
    b_.stride /= divisor;
    pair_divisor_ = divisor;
    inverse_ = b_.stride == 1 ? 0 : Inverse(a_.stride, b_.stride);
  }

  bool Run() const { return From(0, 0, false); }

 private:
  // Whether terms k.. can bring `sum` to 0; `any` says that an earlier d is not 0. d and -d are
  // alike, so the first that is not 0 is positive.
  bool From(size_t k, Wide sum, bool any) const {
    if (sum % divisor_[k] != 0) return false;
    if (k + 2 == terms_.size()) return any && PairReaches(-sum);
    const Term& term = terms_[k];
    Wide low = std::max<Wide>(CeilDiv(-reach_[k + 1] - sum, term.stride), -term.bound);
    const Wide high = std::min<Wide>(FloorDiv(reach_[k + 1] - sum, term.stride), term.bound);
    if (!any) low = 0;
    for (Wide d = low; d <= high; ++d) {
      if (From(k + 1, sum + d * term.stride, any || d != 0)) return true;
    }
    return false;
  }

  // Whether a * x + b * y = target has a solution within the bounds.
  bool PairReaches(Wide target) const {
    target /= pair_divisor_;
    const Wide a = a_.stride, b = b_.stride;
    const Wide low = std::max<Wide>(CeilDiv(target - b * b_.bound, a), -a_.bound);
    const Wide high = std::min<Wide>(FloorDiv(target + b * b_.bound, a), a_.bound);
    const Wide residue = ((target % b + b) % b) * inverse_ % b;  // x modulo b
    const Wide first = low + (((residue - low) % b) + b) % b;
    return first <= high;
  }

  std::vector<Term> terms_;
  std::vector<Wide> reach_;       // of terms k..
  std::vector<int64_t> divisor_;  // of the strides of terms k..
  Term a_, b_;                    // the last two, strides without their common divisor
  int64_t pair_divisor_;
  int64_t inverse_;
};

}  // namespace

bool OverlapsItself(const View& view) {
  std::vector<Term> terms;
  bool repeats = false;
  for (size_t d = 0; d < view.sizes.size(); ++d) {
    if (view.sizes[d] == 0) return false;
    if (view.sizes[d] == 1) continue;
    repeats |= view.strides[d] == 0;
    terms.push_back({view.sizes[d] - 1, view.strides[d]});
  }
  if (repeats) return true;
  RemoveIdleTerms(&terms);
  if (terms.empty()) return false;
  for (size_t i = 0; i < terms.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (PairOverlaps(terms[i], terms[j])) return true;
    }
  }
  if (terms.size() == 2) return false;
  return MoreTuplesThanPlaces(terms) || Search(std::move(terms)).Run();
}

}  // namespace tpu::shape
