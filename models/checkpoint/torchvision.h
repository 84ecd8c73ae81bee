// torchvision's weights: safetensors files with the names and layouts of its state dicts.
//
//   const auto file = open_weights("resnet50.safetensors");
//   load_torchvision(*model, *file);
//   save_torchvision("tuned.safetensors", *model);   // torchvision's load_state_dict takes it
//
// In torchvision's files, convolution weights are (K, C, R, S), attention's projections are
// (out, in), and the first fully connected layer after an image reads it as (C, H, W). Here
// they are (K, R, S, C), (in, out) and (H, W, C). The device rearranges the weights after
// reading a file and before writing one.
//
// Threads: the session's issuing thread.
#pragma once

#include <string>
#include <vector>

#include "models/checkpoint/weights.h"
#include "models/image_model.h"

namespace tidemark {

// Reads only the header. Returns the last layer's parameters if the file lacks them or has them
// for another number of classes; loading leaves these unchanged. Throws DataError if anything
// else is missing, has another shape or type, or is not part of the network. Auxiliary
// classifiers and batch counts (num_batches_tracked, unused here) are ignored.
std::vector<std::string> check_torchvision(const ImageModel& model, const WeightSource& file);

// Checks first, then changes the model. `missing` is the list from check_torchvision.
LoadReport load_torchvision(const ImageModel& model, WeightSource& file);

// Replaces the file atomically. Throws UsageError on devices without data.
void save_torchvision(const std::string& path, const ImageModel& model);

// For dry runs: the device work of loading and saving, apart from copying bytes.
void rearrange_from_torchvision(const ImageModel& model);
// Every tensor with torchvision's name and layout. Tensors with another layout are copies,
// which can be evicted and recomputed like any other.
std::vector<NamedTensor> torchvision_tensors(const ImageModel& model);

}  // namespace tidemark
