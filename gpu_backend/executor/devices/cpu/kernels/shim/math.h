// C's <math.h> alone: libstdc++'s would pull in all of <cmath>, whose overloads device_math.h already has.
#pragma once

#define _GLIBCXX_INCLUDE_NEXT_C_HEADERS
#include_next <math.h>
