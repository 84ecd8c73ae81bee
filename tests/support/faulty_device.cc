#include "tests/support/faulty_device.h"

#include <chrono>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace tidemark {
namespace {

const char* to_string(CallKind kind) {
  switch (kind) {
    case CallKind::kKernel: return "kernel";
    case CallKind::kHostTask: return "host task";
    case CallKind::kCopy: return "copy";
  }
  return "?";
}

// Keeps the core busy, as a real copy does.
void stay_busy(Nanos time) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(time.count());
  while (std::chrono::steady_clock::now() < end) {
  }
}

std::string fault_message(CallKind kind, StreamId stream, int64_t nth) {
  return std::string("injected fault in ") + to_string(kind) + " " + std::to_string(nth) +
         " of the " + std::string(to_string(stream)) + " stream";
}

}  // namespace

void FaultyDevice::fail(CallKind kind, StreamId stream, int64_t nth, FaultTimes times) {
  auto fault = std::make_shared<Fault>();
  fault->kind = kind;
  fault->stream = stream;
  fault->nth = count(kind, stream) + nth;
  fault->times = times;
  faults_.push_back(std::move(fault));
}

void FaultyDevice::heal() {
  for (const auto& fault : faults_) fault->armed = false;
  faults_.clear();
}

void FaultyDevice::delay_copies(uint64_t seed, Nanos longest) {
  random_.seed(seed);
  longest_delay_ = longest;
}

std::shared_ptr<FaultyDevice::Fault> FaultyDevice::next_call(CallKind kind, StreamId stream) {
  const int64_t number = count(kind, stream) + 1;
  calls_[static_cast<size_t>(kind)][static_cast<size_t>(stream)] = number;
  for (const auto& fault : faults_) {
    if (fault->kind != kind || fault->stream != stream) continue;
    if (fault->times == FaultTimes::kOnce ? number == fault->nth : number >= fault->nth) {
      return fault;
    }
  }
  return nullptr;
}

Work FaultyDevice::with_fault(Work work, CallKind kind, StreamId stream) {
  if (auto fault = next_call(kind, stream)) {
    work.run = [fault, fired = fired_, run = std::move(work.run),
                message = fault_message(kind, stream, count(kind, stream))](void* native) {
      if (fault->fires()) {
        ++*fired;
        throw std::runtime_error(message);
      }
      run(native);
    };
  }
  return work;
}

Event FaultyDevice::enqueue(StreamId stream, Work work) {
  return ForwardingDevice::enqueue(stream,
                                   with_fault(std::move(work), CallKind::kKernel, stream));
}

Event FaultyDevice::enqueue_host(StreamId stream, Work work) {
  return ForwardingDevice::enqueue_host(
      stream, with_fault(std::move(work), CallKind::kHostTask, stream));
}

Event FaultyDevice::copy(StreamId stream, const Copy& copy) {
  const std::shared_ptr<Fault> fault = next_call(CallKind::kCopy, stream);
  Nanos delay{0};
  if (longest_delay_ > Nanos(0)) {
    delay = Nanos(std::uniform_int_distribution<int64_t>(0, longest_delay_.count())(random_));
  }
  if (!has_data() || (!fault && delay == Nanos(0))) return ForwardingDevice::copy(stream, copy);

  Work work;
  work.tag = copy.tag;
  work.run = [copy, delay, fault, fired = fired_,
              message = fault_message(CallKind::kCopy, stream, count(CallKind::kCopy, stream))](
                 void*) {
    stay_busy(delay);
    const auto bytes = static_cast<size_t>(copy.bytes.count());
    auto move = [&copy](size_t count) {
      if (count > 0) std::memmove(copy.to, copy.from, count);
    };
    if (fault && fault->fires()) {
      move(bytes / 2);
      ++*fired;
      throw std::runtime_error(message);
    }
    move(bytes);
  };
  return ForwardingDevice::enqueue_host(stream, std::move(work));
}

}  // namespace tidemark
