// See cuda_runtime.h: there is no library behind these names.
#pragma once

using cublasLtHandle_t = void*;
