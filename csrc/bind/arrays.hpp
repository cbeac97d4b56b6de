// NumPy arrays as the bindings take them: read, or written in place.
#pragma once

#include <nanobind/ndarray.h>

namespace sparring {

template <class T>
using In = nanobind::ndarray<const T, nanobind::c_contig, nanobind::device::cpu>;
template <class T>
using Out = nanobind::ndarray<T, nanobind::c_contig, nanobind::device::cpu>;

}  // namespace sparring
