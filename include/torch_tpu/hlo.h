// The public builder: typed StableHLO in, text out. See torch_tpu/client.h to compile and run it.
#pragma once

#include "hlo/hlo.h"
