#pragma once
// Symbol visibility of libtessera.so: everything is hidden but what carries TESSERA_API.
#ifndef TESSERA_API
#define TESSERA_API __attribute__((visibility("default")))
#endif
