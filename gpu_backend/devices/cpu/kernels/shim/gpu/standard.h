// cuda::std is the C++ standard library of this machine's compiler.
#pragma once

namespace std {}
namespace cuda {
namespace std {
using namespace ::std;
}  // namespace std
}  // namespace cuda
