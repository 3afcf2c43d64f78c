// reduce() and its operators stand with all other groups here.
#pragma once

#include "../cooperative_groups.h"
