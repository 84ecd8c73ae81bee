// Training steps of networks that no training program offers, for capture, on tensors without
// data.
//
// Threads: the session's issuing thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "examples/planning/capture_model.h"

namespace tidemark {

// "r3d_18": clips of 16 frames. "transformer-base": source and target of one length. "unet":
// padded, images of 416 x 608 as in Checkmate and MONeT; "unet3d": padded, volumes of 64 x 128
// x 128 with one channel. An image size asked for replaces height and width, and a volume has
// half as many slices. "unet-upsample", "unet3d-upsample": the same with linear interpolation
// and a convolution in place of each transposed convolution.
const std::vector<std::string>& step_names();

// Makes the network and its optimizer in the current session, whose device must have no data.
// REQUIRES: request names one of step_names(). Throws UsageError, OutOfMemory.
std::function<void()> make_step(const CaptureRequest& request);

}  // namespace tidemark
