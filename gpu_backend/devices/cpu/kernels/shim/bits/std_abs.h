// libstdc++ would define overloads of abs that math.h already has.
#pragma once

#include "../gpu/device_math.h"

namespace std {
using ::abs;
}
