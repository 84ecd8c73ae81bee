#include "bench/memory_trace.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <unordered_map>

#include "runtime/core/errors.h"

namespace tidemark {

Bytes MemoryTrace::max_live() const {
  std::unordered_map<int64_t, Bytes> sizes;
  Bytes live{0}, most{0};
  for (const TraceEvent& event : events) {
    if (event.kind == TraceEvent::kAllocate) {
      live += sizes[event.id] = std::max(align_up(event.size), kAlignment);
      most = std::max(most, live);
    } else {
      live -= sizes[event.id];
    }
  }
  return most;
}

Bytes MemoryTrace::total() const {
  Bytes sum{0};
  for (const TraceEvent& event : events) {
    if (event.kind == TraceEvent::kAllocate) sum += std::max(align_up(event.size), kAlignment);
  }
  return sum;
}

MemoryTrace read_trace(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw DataError(path, 0, "cannot be read");
  MemoryTrace trace;
  std::unordered_map<int64_t, bool> live;
  std::string line;
  for (int64_t offset = 0; std::getline(file, line);
       offset += static_cast<int64_t>(line.size()) + 1) {
    std::istringstream words(line);
    std::string kind, tag;
    if (!(words >> kind) || kind[0] == '#') continue;
    TraceEvent event;
    int64_t size = 0;
    bool good = static_cast<bool>(words >> event.id);
    if (kind == "a") {
      good = good && words >> size && size >= 0 && !live[event.id];
      event.size = Bytes(size);
      event.workspace = good && words >> tag && tag == "w";
    } else {
      event.kind = TraceEvent::kFree;
      good = good && kind == "f" && live[event.id];
    }
    if (!good) throw DataError(path, offset, "not 'a NEW_ID SIZE [w]' or 'f ID': " + line);
    live[event.id] = event.kind == TraceEvent::kAllocate;
    trace.events.push_back(event);
  }
  return trace;
}

namespace {

class ResNetTrace {
 public:
  explicit ResNetTrace(const ResNetTraceOptions& options) : options_(options) {}

  MemoryTrace make() {
    layers();
    for (const Layer& layer : layers_) {
      parameters_.push_back({allocate(layer.weight), allocate(layer.weight)});  // and momentum
    }
    for (int step = 0; step < options_.steps; ++step) train();
    return trace_;
  }

 private:
  struct Layer {  // convolution, batch norm, ReLU
    Bytes weight, output, workspace;
    int64_t channels = 0;
    bool relu = true;
    bool ends_block = false;
  };
  struct Saved {
    int64_t convolution = 0, normalised = 0, statistics = 0, activated = 0;
  };

  void layer(int64_t in, int64_t out, int64_t kernel, int64_t side, bool relu = true) {
    Layer l;
    l.channels = out;
    l.weight = Bytes(4 * in * out * kernel * kernel);
    l.output = Bytes(4 * options_.batch * out * side * side);
    // As library convolutions ask for: a copy of the weights, and a slice of the input per
    // thread.
    l.workspace = kernel == 1 ? Bytes(l.weight.count() / 2)
                              : Bytes(l.weight.count() + 4 * in * kernel * kernel * side * 16);
    l.relu = relu;
    layers_.push_back(l);
  }

  void layers() {
    int64_t side = options_.image / 2;
    layer(3, 64, 7, side);
    side /= 2;
    int64_t in = 64;
    const std::array<int, 4> blocks{3, 4, 6, 3};
    for (size_t stage = 0; stage < blocks.size(); ++stage) {
      const int64_t width = int64_t{64} << stage;
      for (int block = 0; block < blocks[stage]; ++block) {
        const int64_t before = side;
        if (stage > 0 && block == 0) side /= 2;
        layer(in, width, 1, before);
        layer(width, width, 3, side);
        if (block == 0) layer(in, 4 * width, 1, side, false);
        layer(width, 4 * width, 1, side);
        layers_.back().ends_block = true;
        in = 4 * width;
      }
    }
  }

  int64_t allocate(Bytes size, bool workspace = false) {
    trace_.events.push_back({TraceEvent::kAllocate, ++last_id_, size, workspace});
    return last_id_;
  }
  void free(int64_t id) { trace_.events.push_back({TraceEvent::kFree, id, Bytes(0), false}); }

  void train() {
    const int64_t data =
        allocate(Bytes(4 * 3 * options_.batch * options_.image * options_.image));
    std::vector<Saved> saved;
    for (const Layer& l : layers_) {
      Saved s;
      s.convolution = allocate(l.output);
      free(allocate(l.workspace, true));
      s.normalised = allocate(l.output);
      s.statistics = allocate(Bytes(8 * l.channels));
      if (l.ends_block) {  // the sum with the shortcut takes the place of the normalised one
        const int64_t sum = allocate(l.output);
        free(s.normalised);
        s.normalised = sum;
      }
      if (l.relu) {
        s.activated = allocate(l.output);
        free(s.normalised);
        s.normalised = 0;
      }
      saved.push_back(s);
    }

    std::vector<int64_t> weight_gradients;
    int64_t gradient = allocate(layers_.back().output);
    for (size_t i = layers_.size(); i-- > 0;) {
      const Layer& l = layers_[i];
      Saved& s = saved[i];
      if (s.activated) {
        const int64_t of_relu = allocate(l.output);
        free(gradient);
        free(s.activated);
        gradient = of_relu;
      }
      const int64_t of_norm = allocate(l.output);
      free(gradient);
      if (s.normalised) free(s.normalised);
      free(s.convolution);
      free(s.statistics);
      if (i > 0) {
        const int64_t of_input = allocate(layers_[i - 1].output);
        free(allocate(l.workspace, true));
        gradient = of_input;
      }
      const int64_t of_weight = allocate(l.weight);
      free(allocate(l.workspace, true));
      free(of_norm);
      if (options_.update_in_backward) {
        free(of_weight);
      } else {
        weight_gradients.push_back(of_weight);
      }
    }
    for (const int64_t id : weight_gradients) free(id);
    free(data);
  }

  ResNetTraceOptions options_;
  std::vector<Layer> layers_;
  std::vector<std::pair<int64_t, int64_t>> parameters_;
  MemoryTrace trace_;
  int64_t last_id_ = 0;
};

}  // namespace

MemoryTrace resnet_like_trace(const ResNetTraceOptions& options) {
  return ResNetTrace(options).make();
}

}  // namespace tidemark
