// All of its device side stands in kernel.h.
#pragma once

#include "gpu/kernel.h"
