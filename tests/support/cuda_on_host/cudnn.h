// See cuda_runtime.h: there is no library behind these names.
#pragma once

enum cudnnStatus_t { CUDNN_STATUS_SUCCESS };
using cudnnHandle_t = void*;
