//===- ATenForeach.cpp - operators of ATen over lists of tensors
//---------------------------------------------------===//
//
// _foreach_* is its operator of one tensor, for each; _fused_adam and the like are the step of an optimiser for each
// parameter, computed in f32 or wider and rounded once.
//
// Source: the native function schemas of PyTorch (aten/src/ATen/native/native_functions.yaml), and
// aten/src/ATen/native/cpu/Fused{Adam,SGD,Adagrad}Kernel.cpp.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ATenSupport.h"
#include "OpRegistry.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// Entry i of a list of numbers; what is no list is for all.
Attribute entryOf(PrimBuilder &b, Attribute list, size_t i) {
  auto at = [&](auto array, auto make) { return i < array.size() ? Attribute(make(array[i])) : Attribute(); };
  if (auto numbers = dyn_cast<DenseF64ArrayAttr>(list))
    return at(numbers.asArrayRef(), [&](double x) { return b.getF64FloatAttr(x); });
  if (auto numbers = dyn_cast<DenseI64ArrayAttr>(list))
    return at(numbers.asArrayRef(), [&](int64_t x) { return b.getI64IntegerAttr(x); });
  if (auto flags = dyn_cast<DenseBoolArrayAttr>(list))
    return at(flags.asArrayRef(), [&](bool x) { return b.getBoolAttr(x); });
  if (auto entries = dyn_cast<ArrayAttr>(list))
    return at(entries.getValue(), [](Attribute x) { return x; });
  return list;
}

/// `type`, for each tensor of the lists. `names`: how that operator calls what the list's one calls otherwise.
NodeHandler each(std::string type, std::vector<std::pair<const char *, const char *>> names) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    PrimBuilder &b = ctx.b;
    auto nameOf = [&](StringRef name) -> StringRef {
      for (auto [from, to] : names)
        if (name == from)
          return to;
      return name;
    };
    struct Argument {
      StringRef name;
      SmallVector<Value> tensors;
    };
    SmallVector<Argument> lists;
    SmallVector<NamedAttribute> numbers;
    size_t count = 0;
    for (NamedAttribute attr : ctx.node().getAttrs()) {
      StringRef name = attr.getName();
      if (name == "arg_names")
        continue;
      if (!name.consume_back(".count")) {
        numbers.push_back(attr);
        continue;
      }
      lists.push_back({nameOf(name), c.tensors(name)});
      count = std::max(count, lists.back().tensors.size());
    }
    for (const Argument &list : lists)
      if (list.tensors.size() != count)
        return ctx.invalid("takes lists of as many tensors, but got " + Twine(list.tensors.size()) + " and " +
                           Twine(count));
    SmallVector<TensorArgument> shared;
    for (StringRef name : {"self", "other", "scalar", "weight"})
      if (Value value = c.tensor(name))
        shared.push_back({nameOf(name), value});
    for (size_t i = 0; i < count; ++i) {
      SmallVector<TensorArgument> tensors(shared);
      for (const Argument &list : lists)
        tensors.push_back({list.name, list.tensors[i]});
      NamedAttrList attributes;
      for (NamedAttribute attr : numbers) {
        Attribute entry = entryOf(b, attr.getValue(), i);
        if (!entry)
          return ctx.invalid("argument \"" + attr.getName().getValue() + "\" has fewer numbers than there are tensors");
        // A number that the program computes is named as its operand.
        if (auto operand = dyn_cast<StringAttr>(entry))
          if (Value value = c.tensor(operand.getValue())) {
            tensors.push_back({nameOf(attr.getName()), value});
            entry = b.getStringAttr(nameOf(attr.getName()));
          }
        attributes.set(nameOf(attr.getName()), entry);
      }
      FailureOr<SmallVector<Value>> y = callATen(ctx, type, tensors, attributes);
      if (failed(y) || failed(ctx.set(i, (*y)[0])))
        return failure();
    }
    return success();
  };
}

//===--- optimisers -----------------------------------------------------------------------------------------------===//

/// The step of one parameter: its tensors, those of the lists by their number, are 0 the parameter and 1 the gradient.
class Step {
public:
  Step(Call &c, Type wide) : c(c), b(c.b), wide(wide) {}

  /// Argument "lr", of any shape with one element, or any other number, like `v`.
  FailureOr<Value> number(StringRef name, Value like) {
    FailureOr<Value> value = c.as(name, wide);
    if (failed(value))
      return failure();
    return spread(*value, like);
  }
  FailureOr<Value> spread(Value scalar, Value like) {
    FailureOr<Value> single = c.ctx.scalar(b.convert(scalar, wide), "a number of one element");
    return failed(single) ? single : FailureOr<Value>(b.broadcastTo(*single, getSizes(like)));
  }
  /// 1 - base^step
  Value correction(double base, Value step) {
    Value power = b.binary<PowOp>(b.splatLike(step, base), step);
    return b.sub(b.splatLike(step, 1), power);
  }

  Call &c;
  PrimBuilder &b;
  Type wide;
};

/// Gets the tensors of one parameter, in f32 or wider, and changes them; `step`: the number of the step, or null.
using Rule = LogicalResult (*)(Step &, MutableArrayRef<Value>, Value);

/// p -= lr * m / (sqrt(v) + eps), of moments without their bias.
template <bool isDecoupled> LogicalResult adam(Step &s, MutableArrayRef<Value> v, Value step) {
  PrimBuilder &b = s.b;
  Call &c = s.c;
  FailureOr<Value> lr = s.number("lr", v[0]);
  if (failed(lr))
    return failure();
  const double decay = c.number("weight_decay", 0), beta1 = c.number("beta1", 0.9), beta2 = c.number("beta2", 0.999);
  if (decay != 0 && isDecoupled)
    v[0] = b.sub(v[0], b.mul(b.binary<MulOp>(*lr, decay), v[0]));
  Value g = decay != 0 && !isDecoupled ? b.add(v[1], b.binary<MulOp>(v[0], decay)) : v[1];
  v[2] = b.add(v[2], b.binary<MulOp>(b.sub(g, v[2]), 1 - beta1));
  v[3] = b.add(b.binary<MulOp>(v[3], beta2), b.binary<MulOp>(b.mul(g, g), 1 - beta2));
  Value second = v[3];
  if (c.flag("amsgrad"))
    second = v[4] = b.max(v[4], v[3]);
  Value root = b.div(b.unary<SqrtOp>(second), b.unary<SqrtOp>(s.correction(beta2, step)));
  Value change = b.div(v[2], b.binary<AddOp>(root, c.number("eps", 1e-8)));
  v[0] = b.sub(v[0], b.mul(b.div(*lr, s.correction(beta1, step)), change));
  return success();
}

LogicalResult sgd(Step &s, MutableArrayRef<Value> v, Value) {
  PrimBuilder &b = s.b;
  Call &c = s.c;
  FailureOr<Value> lr = s.number("lr", v[0]);
  if (failed(lr))
    return failure();
  const double decay = c.number("weight_decay", 0), momentum = c.number("momentum", 0);
  Value g = decay != 0 ? b.add(v[1], b.binary<MulOp>(v[0], decay)) : v[1];
  if (momentum != 0) {
    v[2] = c.flag("is_first_step")
               ? g
               : b.add(b.binary<MulOp>(v[2], momentum), b.binary<MulOp>(g, 1 - c.number("dampening", 0)));
    g = c.flag("nesterov") ? b.add(g, b.binary<MulOp>(v[2], momentum)) : v[2];
  }
  v[0] = b.sub(v[0], b.mul(*lr, g));
  return success();
}

LogicalResult adagrad(Step &s, MutableArrayRef<Value> v, Value step) {
  PrimBuilder &b = s.b;
  Call &c = s.c;
  FailureOr<Value> lr = s.number("lr", v[0]);
  if (failed(lr))
    return failure();
  const double decay = c.number("weight_decay", 0);
  Value g = decay != 0 ? b.add(v[1], b.binary<MulOp>(v[0], decay)) : v[1];
  Value fall = b.binary<AddOp>(b.binary<MulOp>(b.binary<SubOp>(step, 1), c.number("lr_decay", 0)), 1);
  v[2] = b.add(v[2], b.mul(g, g));
  v[0] = b.sub(v[0], b.mul(b.div(*lr, fall), b.div(g, b.binary<AddOp>(b.unary<SqrtOp>(v[2]), c.number("eps", 1e-10)))));
  return success();
}

/// Results are lists as the arguments `lists` are: all of them after the step, but of a gradient what it was before
/// it is turned around, divided by argument "grad_scale". Nothing changes where "found_inf" is 1.
NodeHandler optimiser(std::vector<const char *> lists, Rule rule) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    PrimBuilder &b = ctx.b;
    SmallVector<SmallVector<Value>> all;
    SmallVector<size_t> starts;
    size_t results = 0;
    for (const char *name : lists) {
      all.push_back(c.tensors(name));
      starts.push_back(results);
      results += all.back().size();
      if (!all.back().empty() && all.back().size() != all[0].size())
        return ctx.invalid("takes lists of as many tensors, but " + Twine(name) + " has " + Twine(all.back().size()) +
                           " of " + Twine(all[0].size()));
    }
    SmallVector<Value> steps = c.tensors("state_steps");
    if (all[1].size() != all[0].size() || (rule != sgd && steps.size() != all[0].size()))
      return ctx.invalid("needs a gradient and the number of the step for each parameter");
    for (size_t i = 0; i < all[0].size(); ++i) {
      Type type = b.elementOf(all[0][i]), wide = b.accumulatorOf(type);
      if (!isa<FloatType>(type))
        return ctx.unsupported("of " + describe(all[0][i]) + " is not supported; parameters must be floats");
      Step step(c, wide);
      SmallVector<Value> values, before;
      for (const auto &list : all) {
        if (list.empty()) {
          values.push_back(b.splat(wide, getSizes(all[0][i]), 0));
          continue;
        }
        FailureOr<Value> fitting = ctx.castSizes(b.convert(list[i], wide), getSizes(all[0][i]));
        if (failed(fitting))
          return failure();
        values.push_back(*fitting);
      }
      before = values;
      if (Value scale = c.tensor("grad_scale")) {
        FailureOr<Value> spread = step.spread(scale, values[1]);
        if (failed(spread))
          return failure();
        values[1] = b.div(values[1], *spread);
      }
      Value gradient = values[1], number;
      if (c.flag("maximize"))
        values[1] = b.unary<NegOp>(values[1]);
      if (!steps.empty()) {
        FailureOr<Value> spread = step.spread(steps[i], values[0]);
        if (failed(spread))
          return failure();
        number = *spread;
      }
      if (failed(rule(step, values, number)))
        return failure();
      values[1] = gradient;
      if (Value found = c.tensor("found_inf")) {
        FailureOr<Value> spread = step.spread(found, values[0]);
        if (failed(spread))
          return failure();
        Value isFound = b.compare(CompareKind::EQ, *spread, 1);
        for (auto [value, old] : llvm::zip_equal(values, before))
          value = b.select(isFound, old, value);
      }
      for (size_t list = 0; list < all.size(); ++list)
        if (!all[list].empty() && failed(ctx.set(starts[list] + i, b.convert(values[list], b.elementOf(all[list][i])))))
          return failure();
    }
    if (rule != adagrad)
      return success();
    for (auto [i, number] : llvm::enumerate(steps)) // given back as they are
      if (results + i < ctx.numResults() && failed(ctx.set(results + i, number)))
        return failure();
    return success();
  };
}

} // namespace

void tc::populateATenForeach(OpRegistrar &onOp) {
  auto on = [&](const Twine &type, NodeHandler handler) { onOp(type.str(), 1, std::move(handler), 0); };
  for (const char *name :
       {"abs",     "acos", "asin",   "atan", "ceil",  "cos",   "cosh", "erf",   "erfc",       "exp",   "expm1",
        "floor",   "frac", "lgamma", "log",  "log10", "log1p", "log2", "neg",   "reciprocal", "round", "rsqrt",
        "sigmoid", "sign", "sin",    "sinh", "sqrt",  "tan",   "tanh", "trunc", "max",        "clone", "copy"})
    on(Twine("_foreach_") + name + ".default", each((Twine(name) + ".default").str(), {}));
  on("_foreach_zero.default", each("zeros_like.default", {}));
  on("_foreach_mm.default", each("mm.default", {}));
  on("_foreach_norm.Scalar", each("linalg_vector_norm.default", {}));
  for (const char *name : {"add", "sub", "mul", "div"}) {
    for (const char *form : {"List", "Tensor"})
      if (StringRef(name) != "sub" || StringRef(form) != "Tensor") // there is no such
        on(Twine("_foreach_") + name + "." + form, each((Twine(name) + ".Tensor").str(), {}));
    for (const char *form : {"Scalar", "ScalarList"})
      on(Twine("_foreach_") + name + "." + form,
         each((Twine(name) + ".Scalar").str(), {{"scalar", "other"}, {"scalars", "other"}}));
  }
  const std::tuple<const char *, const char *, const char *> bounds[] = {{"clamp_max", "clamp_max", "max"},
                                                                         {"clamp_min", "clamp_min", "min"},
                                                                         {"maximum", "clamp_min", "min"},
                                                                         {"minimum", "clamp_max", "max"}};
  for (auto [name, clamp, bound] : bounds) {
    on(Twine("_foreach_") + name + ".List", each((Twine(clamp) + ".Tensor").str(), {{"other", bound}}));
    for (const char *form : {"Scalar", "ScalarList"})
      on(Twine("_foreach_") + name + "." + form,
         each((Twine(clamp) + ".default").str(), {{"scalar", bound}, {"scalars", bound}}));
  }
  for (const char *name : {"addcdiv", "addcmul"})
    for (const char *form : {"Scalar", "ScalarList"})
      on(Twine("_foreach_") + name + "." + form, each((Twine(name) + ".default").str(), {{"scalars", "value"}}));
  on("_foreach_lerp.List", each("lerp.Tensor", {{"tensors1", "end"}, {"weights", "weight"}}));
  for (const char *form : {"Scalar", "ScalarList"}) {
    on(Twine("_foreach_lerp.") + form, each("lerp.Scalar", {{"tensors1", "end"}}));
    on(Twine("_foreach_pow.") + form, each("pow.Tensor_Scalar", {}));
  }
  on("_foreach_pow.List", each("pow.Tensor_Tensor", {}));
  on("_foreach_pow.ScalarAndTensor", each("pow.Scalar", {}));
  for (const char *form : {".default", ".tensor_lr"}) {
    const std::vector<const char *> moments{"self", "grads", "exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs"};
    on(Twine("_fused_adam") + form, optimiser(moments, adam</*isDecoupled=*/false>));
    on(Twine("_fused_adamw") + form, optimiser(moments, adam</*isDecoupled=*/true>));
    on(Twine("_fused_sgd") + form, optimiser({"self", "grads", "momentum_buffer_list"}, sgd));
    on(Twine("_fused_adagrad") + form, optimiser({"self", "grads", "state_sums"}, adagrad));
  }
}
