// What kernels use of it stands in device_io.h.
#pragma once

#include "gpu/device_io.h"
