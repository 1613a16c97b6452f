#pragma once
// Dialect ttng: matrix instructions of warp groups and what goes with them.
#include "tessera/ir/ttgir/Ttgir.h"

#include "tessera/ir/ttng/TtngDialect.h.inc"
#define GET_OP_CLASSES
#include "tessera/ir/ttng/TtngOps.h.inc"
