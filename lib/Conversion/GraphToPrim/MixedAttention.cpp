//===- MixedAttention.cpp - Attention of queries and values of different element types ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "MixedAttention.h"

#include "tc/Dialect/TC/IR/TC.h"

using namespace mlir;
using namespace tc;

/// The float type of a tensor's elements; null where there is none, or it is not known.
static FloatType floatsOf(Type type) {
  auto tensor = dyn_cast<TensorType>(type);
  return tensor ? dyn_cast<FloatType>(tensor.getElementType()) : FloatType();
}

graph::NodeOp tc::unifyAttention(graph::NodeOp node) {
  if (node.getDomain() != "ai.onnx" || node.getOpType() != "Attention" || node.getInputs().size() < 3)
    return node;
  FloatType queries = floatsOf(node.getInputs()[0].getType()), values = floatsOf(node.getInputs()[2].getType());
  if (!queries || !values || queries == values)
    return node;
  FloatType wide = queries.getWidth() > values.getWidth() ? queries : values;
  if (queries.getWidth() == values.getWidth()) // f16 and bf16
    wide = Float32Type::get(node.getContext());
  OpBuilder builder(node);
  auto castTo = [&](Value v, FloatType element, Type type) -> Value {
    NamedAttribute to(builder.getStringAttr("to"), TypeAttr::get(element));
    return graph::NodeOp::create(builder, node.getLoc(), "ai.onnx", "Cast", node.getOpset(), type, v, to, {})
        ->getResult(0);
  };
  // Masks and lengths have types of their own.
  SmallVector<Value> operands(node.getInputs());
  for (size_t i : {0, 1, 2, 4, 5})
    if (FloatType own = i < operands.size() ? floatsOf(operands[i].getType()) : FloatType(); own && own != wide)
      operands[i] = castTo(operands[i], wide, cast<TensorType>(operands[i].getType()).clone(wide));
  // Results: like queries, keys, values, queries.
  SmallVector<Type> types;
  for (Type type : node->getResultTypes())
    types.push_back(floatsOf(type) ? Type(cast<TensorType>(type).clone(wide)) : type);
  auto unified = graph::NodeOp::create(builder, node.getLoc(), node.getDomain(), node.getOpType(), node.getOpset(),
                                       types, operands, node.getAttrs().getValue(), {});
  for (auto [i, from, to] : llvm::enumerate(node->getResults(), unified->getResults()))
    if (!from.use_empty())
      from.replaceAllUsesWith(castTo(to, i == 2 ? values : queries, from.getType()));
  node->erase();
  return unified;
}
