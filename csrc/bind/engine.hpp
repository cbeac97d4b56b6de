// What computes a perceptron that learns: in float32, or with products in bfloat16.
#pragma once

#include <memory>
#include <utility>

#include "bind/workers.hpp"
#include "core/error.hpp"
#include "nets/amx_layers.hpp"
#include "nets/layers.hpp"

namespace sparring {

class Engine {
 public:
  virtual ~Engine() = default;
  virtual int rows() const = 0;
  virtual void load(const f32* weights, Workers& workers) = 0;
  virtual void forward(const RowsIn& rows, f32* out, bool keep, Workers& workers) = 0;
  virtual void backward(const f32* head_grad, f32* weight_grad, f32* input_grad, bool add,
                        Workers& workers) = 0;
};

template <class Kind>
class EngineOf final : public Engine {
 public:
  explicit EngineOf(LayersShape shape) : layers_(std::move(shape)) {}

  int rows() const override { return layers_.rows(); }

  void load(const f32* weights, Workers& workers) override {
    if constexpr (requires { typename Kind::Load; }) {
      typename Kind::Load job(layers_, weights);
      workers.run(job);
    } else {
      layers_.load(weights);
    }
  }

  void forward(const RowsIn& rows, f32* out, bool keep, Workers& workers) override {
    typename Kind::Forward job(layers_, rows, out, keep);
    workers.run(job);
  }

  void backward(const f32* head_grad, f32* weight_grad, f32* input_grad, bool add,
                Workers& workers) override {
    typename Kind::Backward job(layers_, head_grad, weight_grad, input_grad, add);
    workers.run(job);
  }

 private:
  Kind layers_;
};

inline std::unique_ptr<Engine> make_engine(LayersShape shape, bool bf16) {
  if (!bf16) return std::make_unique<EngineOf<Layers>>(std::move(shape));
  if (!amx_usable()) throw ConfigError("this CPU has no AMX, which products in bfloat16 need");
#if SPARRING_HAS_AMX
  return std::make_unique<EngineOf<AmxLayers>>(std::move(shape));
#else
  return nullptr;
#endif
}

}  // namespace sparring
