// The memory of this machine.
#pragma once

namespace sparring {

// Bytes of memory; 0 if the system does not tell.
double machine_memory();

}  // namespace sparring
