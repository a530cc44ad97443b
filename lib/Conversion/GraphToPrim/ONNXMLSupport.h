//===- ONNXMLSupport.h - what the handlers of ai.onnx.ml share ------------------------------------------*- C++ -*-===//
//
// Models of ai.onnx.ml keep their weights in attributes. Where the specification is silent or ONNX's own reference
// contradicts it, ONNX Runtime's results decide, as that is what such models were made and tested with; exceptions are
// named where they are.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CONVERSION_GRAPHTOPRIM_ONNXMLSUPPORT_H
#define TC_LIB_CONVERSION_GRAPHTOPRIM_ONNXMLSUPPORT_H

#include "ONNXSupport.h"

#include "tc/Dialect/Prim/Interpreter/Tensor.h"

namespace tc {

/// Constants of one row of `values`, or of `shape`.
mlir::Value makeFloats(PrimBuilder &b, mlir::Type type, llvm::ArrayRef<double> values);
mlir::Value makeFloats(PrimBuilder &b, mlir::Type type, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<double> values);
mlir::Value makeInts(PrimBuilder &b, mlir::Type type, llvm::ArrayRef<int64_t> values);

/// Which elements are NaN.
mlir::Value emitIsNan(PrimBuilder &b, mlir::Value x);

/// The tensor in attribute `name`, which must be there.
mlir::FailureOr<prim::Tensor> readTensor(NodeContext &ctx, llvm::StringRef name);
/// Numbers of the attribute `name` (a list), or else of `name`_as_tensor; nullopt where both are absent.
mlir::FailureOr<std::optional<std::vector<double>>> readNumbers(NodeContext &ctx, llvm::StringRef name);

/// Operand 0 as rows of features [N, C], one row where it is 1-D. f64 stays, everything else becomes f32.
mlir::FailureOr<mlir::Value> readFeatures(NodeContext &ctx);

/// The strings in attribute `name`, a list or a tensor; nullopt where it is absent or of numbers.
std::optional<std::vector<std::string>> readStrings(NodeContext &ctx, llvm::StringRef name);

/// The labels of classes in the attribute `strings`, or else `ints`, as strings or i64 [classes]; null without labels.
mlir::FailureOr<mlir::Value> readLabels(NodeContext &ctx, llvm::StringRef ints, llvm::StringRef strings);

enum class PostTransform { None, Softmax, Logistic, SoftmaxZero, Probit };
/// Attribute post_transform, a name.
mlir::FailureOr<PostTransform> readPostTransform(NodeContext &ctx);

/// What all models of scores begin with.
struct ScoreModel {
  mlir::Value x;      ///< readFeatures
  mlir::Value labels; ///< readLabels; null without labels
  PostTransform transform;
};
/// `intLabels`: the attribute with labels that are integers; empty for models without labels.
mlir::FailureOr<ScoreModel> readScoreModel(NodeContext &ctx, llvm::StringRef intLabels = "");

/// What becomes of the one score s of two classes: it stays alone, or two columns are made of it, which are
/// [1 - s, s] or [-s, s] where the transform is none.
enum class SecondClass { None, Complement, Negation };
/// Applies the transform to scores [N, E]; one score that stays alone is changed by the probit transform only.
mlir::Value emitPostTransform(PrimBuilder &b, mlir::Value scores, PostTransform transform,
                              SecondClass second = SecondClass::None);

} // namespace tc

#endif // TC_LIB_CONVERSION_GRAPHTOPRIM_ONNXMLSUPPORT_H
