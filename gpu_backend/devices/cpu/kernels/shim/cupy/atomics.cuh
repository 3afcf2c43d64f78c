// CuPy's extra atomics (float and double minimum and maximum, 64-bit sums) are among all others here.
#pragma once

#include "../gpu/atomics.h"
