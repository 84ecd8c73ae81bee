#include "ops/register.h"

#include "ops/attention/attention.h"
#include "ops/autograd/accumulate.h"
#include "ops/conv/conv2d.h"
#include "ops/conv/conv3d.h"
#include "ops/create/create.h"
#include "ops/elementwise/elementwise.h"
#include "ops/embedding/embedding.h"
#include "ops/linear/matmul.h"
#include "ops/loss/loss.h"
#include "ops/norm/batch_norm.h"
#include "ops/norm/batch_norm_inference.h"
#include "ops/norm/layer_norm.h"
#include "ops/norm/running_stats.h"
#include "ops/optimizer/optimizer.h"
#include "ops/pool/avg_pool2d.h"
#include "ops/pool/max_pool2d.h"
#include "ops/random/random.h"
#include "ops/reduce/reduce.h"
#include "ops/view/contiguous.h"
#include "ops/view/view.h"

namespace tidemark {
namespace {

constexpr const OpDef* kOperators[] = {
    // attention
    &kAttention,
    &kAttentionGrad,
    // autograd
    &kAccumulate,
    // conv
    &kConv2d,
    &kConv2dGradInput,
    &kConv2dGradWeight,
    &kConv3d,
    &kConv3dGradInput,
    &kConv3dGradWeight,
    // create
    &kArange,
    &kFill,
    // elementwise
    &kAbs,
    &kAbsGrad,
    &kAdd,
    &kAddInPlace,
    &kAddScaled,
    &kCast,
    &kCopyInPlace,
    &kDiv,
    &kDivGrad,
    &kEq,
    &kExp,
    &kFillInPlace,
    &kGelu,
    &kGeluGrad,
    &kGt,
    &kLog,
    &kMul,
    &kMulInPlace,
    &kNeg,
    &kRelu,
    &kReluGrad,
    &kRelu6,
    &kRelu6Grad,
    &kScale,
    &kSigmoid,
    &kSigmoidGrad,
    &kSilu,
    &kSiluGrad,
    &kSqrt,
    &kSqrtGrad,
    &kSub,
    &kTanh,
    &kTanhGrad,
    &kWhere,
    &kWhereGrad,
    &kWhereOtherGrad,
    // embedding
    &kEmbedding,
    &kEmbeddingGrad,
    // linear
    &kMatmul,
    // loss
    &kCrossEntropy,
    &kCrossEntropyGrad,
    &kLogSoftmax,
    &kLogSoftmaxGrad,
    &kNllLoss,
    &kNllLossGrad,
    &kSoftmax,
    &kSoftmaxGrad,
    // norm
    &kBatchNorm,
    &kBatchNormGrad,
    &kBatchNormInference,
    &kLayerNorm,
    &kLayerNormGrad,
    &kUpdateRunningStats,
    // optimizer
    &kAdamStep,
    &kClip,
    &kSgdMomentumStep,
    &kSgdStep,
    // pool
    &kAvgPool2d,
    &kAvgPool2dGrad,
    &kMaxPool2d,
    &kMaxPool2dGrad,
    // random
    &kDropout,
    &kNormal,
    &kUniform,
    // reduce
    &kAccuracyCount,
    &kArgmax,
    &kJoinNorms,
    &kMax,
    &kMaxGrad,
    &kNorm,
    &kSum,
    // view
    &kConcat,
    &kCopy,
    &kNarrowGrad,
};

}  // namespace

std::span<const OpDef* const> all_operators() { return kOperators; }

const OpDef* find_operator(std::string_view name) {
  for (const OpDef* op : kOperators) {
    if (name == op->name) return op;
  }
  return nullptr;
}

}  // namespace tidemark
