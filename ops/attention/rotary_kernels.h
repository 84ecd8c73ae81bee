// What the kernels of rotary take from a signature.
#pragma once

#include <cstdint>

#include "ops/attention/rotary.h"
#include "ops/attention/rows.h"
#include "ops/registry/op.h"
#include "runtime/core/host_device.h"

namespace tidemark::attention {

struct RotaryShape {
  Rows rows;
  int64_t batch, tokens, heads, half;
  int64_t table_batch;  // from a sequence's angles to the next one's; 0: all have the same
  float sign;           // of sin

  explicit RotaryShape(const OpQuery& query)
      : rows(query.inputs[0]),
        batch(query.inputs[0].shape[0]),
        tokens(query.inputs[0].shape[1]),
        heads(query.inputs[0].shape[2]),
        half(query.inputs[0].shape[3] / 2),
        table_batch(query.inputs[1].shape.rank() == 3 ? tokens * half : 0),
        sign(query.attr<RotaryAttrs>().inverse ? -1.0F : 1.0F) {}

  int64_t positions() const { return batch * tokens; }

  // Where the heads of a position begin, in x, in y and in the tables.
  struct Place {
    int64_t x, y, table;
  };
  TIDEMARK_HOST_DEVICE Place place(int64_t position) const {
    const int64_t b = position / tokens, t = position % tokens;
    return {rows.at(b, 0, t), position * heads * half * 2, b * table_batch + t * half};
  }
};

PreparedKernel prepare_rotary_cpu(const OpQuery& query);

}  // namespace tidemark::attention
