// torchvision's weights: safetensors files with the names and layouts of its state dicts.
//
//   SafetensorsFile file = open_weights("resnet50.safetensors");
//   load_torchvision(*model, file);
//   save_torchvision("tuned.safetensors", *model);   // torchvision's load_state_dict takes it
//
// There, convolution weights are (K, C, R, S), attention's projections are (out, in), and the
// first fully connected layer behind an image reads it as (C, H, W); here they are (K, R, S,
// C), (in, out) and (H, W, C). Files have the bytes as there; the network has them rearranged,
// on the device.
//
// Threads: the session's issuing thread.
#pragma once

#include <string>
#include <vector>

#include "models/checkpoint/weights.h"
#include "models/image_model.h"

namespace tidemark {

// Reads the header alone. Gives the parameters of the last layer if the file lacks them or has
// them for another number of classes: loading leaves those as they are. Throws DataError if
// anything else is missing, of another shape or type, or not part of the network; batch counts
// (num_batches_tracked), which are not used here, and auxiliary classifiers are passed over.
std::vector<std::string> check_torchvision(const ImageModel& model,
                                           const SafetensorsFile& file);

// Checks first, and then changes the model. `missing` are those that check_torchvision gives.
LoadReport load_torchvision(const ImageModel& model, SafetensorsFile& file);

// Replaces the file atomically. Throws UsageError on devices without data.
void save_torchvision(const std::string& path, const ImageModel& model);

// What these do on the device, beside copying bytes: for dry runs.
void rearrange_from_torchvision(const ImageModel& model);
// Every tensor with torchvision's name and layout. Those of another layout are copies, which
// can be released and made again as other tensors can.
std::vector<NamedTensor> torchvision_tensors(const ImageModel& model);

}  // namespace tidemark
