// The real header, with the kernels' own printf put back in place.
#pragma once

#include "gpu/device_io.h"

#pragma push_macro("printf")
#undef printf
#include_next <stdio.h>
#pragma pop_macro("printf")
