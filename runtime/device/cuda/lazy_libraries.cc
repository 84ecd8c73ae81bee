// Loads cuDNN and cuBLAS when one of their functions is first called. A program that stays on
// the CPU is spared the 200 MiB that they take once loaded, and runs on machines without them.
// No target links to the libraries: this file defines the functions that Tidemark calls, under
// their own names.
//
// Threads: any. Errors: DeviceError from the function called, if its library cannot be loaded.
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cudnn.h>
#include <dlfcn.h>

#include <string>

#include "runtime/core/errors.h"

namespace tidemark {
namespace {

// Tries the path known at build time, then the system's search path. The library is never
// unloaded: its handles and kernels live as long as the process.
void* load(const char* path, const char* name) {
  for (const char* file : {path, name}) {
    if (void* const library = dlopen(file, RTLD_NOW | RTLD_LOCAL)) return library;
  }
  throw DeviceError(std::string("cannot load ") + name + ": " + dlerror());
}

#define TIDEMARK_TEXT_OF(x) #x
#define TIDEMARK_TEXT(x) TIDEMARK_TEXT_OF(x)

void* cublas_lt() {
  static void* const library =
      load(TIDEMARK_CUBLASLT_PATH, "libcublasLt.so." TIDEMARK_TEXT(CUBLAS_VER_MAJOR));
  return library;
}

// cuBLASLt is loaded first: cuBLAS and cuDNN then find it by name.
void* cublas() {
  cublas_lt();
  static void* const library =
      load(TIDEMARK_CUBLAS_PATH, "libcublas.so." TIDEMARK_TEXT(CUBLAS_VER_MAJOR));
  return library;
}

void* cudnn() {
  cublas();
  static void* const library =
      load(TIDEMARK_CUDNN_PATH, "libcudnn.so." TIDEMARK_TEXT(CUDNN_MAJOR));
  return library;
}

template <class Function>
Function* find(void* library, const char* name) {
  void* const function = dlsym(library, name);
  if (!function) throw DeviceError(std::string("no ") + name + " there: " + dlerror());
  return reinterpret_cast<Function*>(function);
}

}  // namespace
}  // namespace tidemark

#define TIDEMARK_LAZY(library, result, name, parameters, arguments)                       \
  result name parameters {                                                                \
    static auto* const real = tidemark::find<decltype(name)>(tidemark::library(), #name); \
    return real arguments;                                                                \
  }

extern "C" {

TIDEMARK_LAZY(cublas, cublasStatus_t, cublasCreate_v2, (cublasHandle_t * a), (a))
TIDEMARK_LAZY(cublas, cublasStatus_t, cublasSetStream_v2, (cublasHandle_t a, cudaStream_t b),
              (a, b))
TIDEMARK_LAZY(cublas, cublasStatus_t, cublasSetWorkspace_v2,
              (cublasHandle_t a, void* b, size_t c), (a, b, c))
TIDEMARK_LAZY(cublas, const char*, cublasGetStatusName, (cublasStatus_t a), (a))
TIDEMARK_LAZY(cublas, const char*, cublasGetStatusString, (cublasStatus_t a), (a))

TIDEMARK_LAZY(cublas_lt, cublasStatus_t, cublasLtCreate, (cublasLtHandle_t * a), (a))
TIDEMARK_LAZY(cublas_lt, cublasStatus_t, cublasLtMatmul,
              (cublasLtHandle_t a, cublasLtMatmulDesc_t b, const void* c, const void* d,
               cublasLtMatrixLayout_t e, const void* f, cublasLtMatrixLayout_t g, const void* h,
               const void* i, cublasLtMatrixLayout_t j, void* k, cublasLtMatrixLayout_t l,
               const cublasLtMatmulAlgo_t* m, void* n, size_t o, cudaStream_t p),
              (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p))
TIDEMARK_LAZY(cublas_lt, cublasStatus_t, cublasLtMatmulAlgoGetHeuristic,
              (cublasLtHandle_t a, cublasLtMatmulDesc_t b, cublasLtMatrixLayout_t c,
               cublasLtMatrixLayout_t d, cublasLtMatrixLayout_t e, cublasLtMatrixLayout_t f,
               cublasLtMatmulPreference_t g, int h, cublasLtMatmulHeuristicResult_t i[],
               int* j),
              (a, b, c, d, e, f, g, h, i, j))
TIDEMARK_LAZY(cublas_lt, cublasStatus_t, cublasLtMatmulDescInit_internal,
              (cublasLtMatmulDesc_t a, size_t b, cublasComputeType_t c, cudaDataType_t d),
              (a, b, c, d))
TIDEMARK_LAZY(cublas_lt, cublasStatus_t, cublasLtMatmulDescSetAttribute,
              (cublasLtMatmulDesc_t a, cublasLtMatmulDescAttributes_t b, const void* c,
               size_t d),
              (a, b, c, d))
TIDEMARK_LAZY(cublas_lt, cublasStatus_t, cublasLtMatmulPreferenceInit_internal,
              (cublasLtMatmulPreference_t a, size_t b), (a, b))
TIDEMARK_LAZY(cublas_lt, cublasStatus_t, cublasLtMatmulPreferenceSetAttribute,
              (cublasLtMatmulPreference_t a, cublasLtMatmulPreferenceAttributes_t b,
               const void* c, size_t d),
              (a, b, c, d))
TIDEMARK_LAZY(cublas_lt, cublasStatus_t, cublasLtMatrixLayoutInit_internal,
              (cublasLtMatrixLayout_t a, size_t b, cudaDataType c, uint64_t d, uint64_t e,
               int64_t f),
              (a, b, c, d, e, f))
TIDEMARK_LAZY(cublas_lt, cublasStatus_t, cublasLtMatrixLayoutSetAttribute,
              (cublasLtMatrixLayout_t a, cublasLtMatrixLayoutAttribute_t b, const void* c,
               size_t d),
              (a, b, c, d))

TIDEMARK_LAZY(cudnn, cudnnStatus_t, cudnnCreate, (cudnnHandle_t * a), (a))
TIDEMARK_LAZY(cudnn, cudnnStatus_t, cudnnSetStream, (cudnnHandle_t a, cudaStream_t b), (a, b))
TIDEMARK_LAZY(cudnn, const char*, cudnnGetErrorString, (cudnnStatus_t a), (a))
TIDEMARK_LAZY(cudnn, void, cudnnGetLastErrorString, (char* a, size_t b), (a, b))
TIDEMARK_LAZY(cudnn, cudnnStatus_t, cudnnBackendCreateDescriptor,
              (cudnnBackendDescriptorType_t a, cudnnBackendDescriptor_t* b), (a, b))
TIDEMARK_LAZY(cudnn, cudnnStatus_t, cudnnBackendDestroyDescriptor, (cudnnBackendDescriptor_t a),
              (a))
TIDEMARK_LAZY(cudnn, cudnnStatus_t, cudnnBackendFinalize, (cudnnBackendDescriptor_t a), (a))
TIDEMARK_LAZY(cudnn, cudnnStatus_t, cudnnBackendExecute,
              (cudnnHandle_t a, cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t c),
              (a, b, c))
TIDEMARK_LAZY(cudnn, cudnnStatus_t, cudnnBackendSetAttribute,
              (cudnnBackendDescriptor_t a, cudnnBackendAttributeName_t b,
               cudnnBackendAttributeType_t c, int64_t d, const void* e),
              (a, b, c, d, e))
TIDEMARK_LAZY(cudnn, cudnnStatus_t, cudnnBackendGetAttribute,
              (cudnnBackendDescriptor_t const a, cudnnBackendAttributeName_t b,
               cudnnBackendAttributeType_t c, int64_t d, int64_t* e, void* f),
              (a, b, c, d, e, f))

}  // extern "C"
