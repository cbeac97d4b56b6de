// How a kernel takes views that it passes on to functions: read where the launch put them.
#pragma once

// Otherwise they are copied into registers first: by NVRTC 13.4 for sm_90, the step of Skull King
// takes 126 instead of 96, and the loss of Shogi spills. Small kernels are better without it.
#define SPARRING_VIEW const __grid_constant__
