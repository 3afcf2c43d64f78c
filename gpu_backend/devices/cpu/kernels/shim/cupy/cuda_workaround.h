// What CuPy's header takes from CUDA's own standard library: type traits, limits, pairs and tuples are the host's here.
#pragma once

#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>
