// See cuda_runtime.h: there is no library behind these names.
#pragma once

enum cublasStatus_t { CUBLAS_STATUS_SUCCESS };
using cublasHandle_t = void*;
