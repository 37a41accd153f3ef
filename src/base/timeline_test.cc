// Timeline: nothing when off, bounded when on, launches that finish late, causes.
#include "base/timeline.h"

#include <gtest/gtest.h>

#include <thread>

namespace tpu::timeline {
namespace {

using std::chrono::milliseconds;

Event Named(const char* name) {
  Event e;
  e.name = name;
  return e;
}

TEST(Timeline, OffKeepsNothing) {
  EXPECT_FALSE(Recording());
  EXPECT_EQ(Add(Named("a")), 0u);
  EXPECT_EQ(AddUnfinished(Named("b")), 0u);
  Finish(0);
  {
    const Span span(Kind::kWait, 0, "c");
  }
  Start(4);
  EXPECT_TRUE(Recording());
  EXPECT_TRUE(Stop(milliseconds(0)).events.empty());
  EXPECT_FALSE(Recording());
}

TEST(Timeline, KeepsTheNewest) {
  Start(3);
  for (const char* name : {"a", "b", "c", "d", "e"}) Add(Named(name));
  const Recorded r = Stop(milliseconds(0));
  ASSERT_EQ(r.events.size(), 3u);
  EXPECT_EQ(r.events.front().name, "c");
  EXPECT_EQ(r.events.back().name, "e");
  EXPECT_EQ(r.dropped, 2u);
}

TEST(Timeline, LaunchesFinishLate) {
  Start(2);
  const uint64_t dropped = AddUnfinished(Named("dropped")), kept = AddUnfinished(Named("kept"));
  Add(Named("newer"));
  Finish(dropped);
  std::thread later([&] {
    std::this_thread::sleep_for(milliseconds(20));
    Finish(kept);
  });
  const Recorded r = Stop(std::chrono::seconds(60));
  later.join();
  ASSERT_EQ(r.events.size(), 2u);
  EXPECT_GT(r.events[0].finished_ns, 0);
  EXPECT_EQ(r.events[1].finished_ns, 0);
}

TEST(Timeline, TicketsOfAnEarlierRecordingDoNothing) {
  Start(2);
  const uint64_t old = AddUnfinished(Named("old"));
  Stop(milliseconds(0));
  Start(2);
  const uint64_t now = AddUnfinished(Named("new"));
  EXPECT_GT(now, old);
  Finish(old);
  const auto start = std::chrono::steady_clock::now();
  const Recorded r = Stop(milliseconds(20));
  EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(20));
  ASSERT_EQ(r.events.size(), 1u);
  EXPECT_EQ(r.events[0].finished_ns, 0);
}

TEST(Timeline, SpansSayHowLongAndForWhom) {
  Start(8);
  PushAnnotation(7);
  PushOperator(8, false);
  {
    const Span span(Kind::kUpload, 1, "up", 64);
  }
  PopOperator();
  {
    const Span span(Kind::kWait, -1, std::string("wait"));
  }
  PopAnnotation();
  PopAnnotation();  // of a scope that was open before the recording
  PopOperator();
  const Recorded r = Stop(milliseconds(0));
  ASSERT_EQ(r.events.size(), 2u);
  const Event& up = r.events[0];
  EXPECT_EQ(up.kind, Kind::kUpload);
  EXPECT_EQ(up.device, 1);
  EXPECT_EQ(up.bytes, 64);
  EXPECT_EQ(up.thread, ThisThread());
  EXPECT_GE(up.end_ns, up.start_ns);
  EXPECT_GT(up.start_ns, 0);
  EXPECT_EQ(up.cause.op, 8u);
  EXPECT_EQ(up.cause.annotations, std::vector<uint64_t>{7});
  EXPECT_EQ(r.events[1].cause.op, 0u);
}

Cause CauseOnAnotherThread(bool in_backward) {
  Cause cause;
  std::thread([&] {
    PushOperator(5, in_backward);
    cause = CurrentCause();
    PopOperator();
  }).join();
  return cause;
}

TEST(Timeline, ABackwardPassHasTheAnnotationsOfItsCaller) {
  Start(8);
  PushAnnotation(1);
  PushAnnotation(2);
  EXPECT_EQ(CauseOnAnotherThread(true).annotations, (std::vector<uint64_t>{1, 2}));
  EXPECT_TRUE(CauseOnAnotherThread(false).annotations.empty());
  std::thread([] {  // a second thread with annotations: it could be either's
    PushAnnotation(3);
    EXPECT_TRUE(CauseOnAnotherThread(true).annotations.empty());
    PopAnnotation();
  })
      .join();
  PopAnnotation();
  PopAnnotation();
  EXPECT_TRUE(CauseOnAnotherThread(true).annotations.empty());
  Stop(milliseconds(0));
}

}  // namespace
}  // namespace tpu::timeline
