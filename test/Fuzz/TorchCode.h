//===- TorchCode.h - code of TorchScript and calls of ATen, changed -------------------------------------*- C++ -*-===//
//
// Code is changed by words, lines, indents and numbers, nested deeply, mixed with code of other archives, and given
// calls of any operator of PyTorch with arguments of the types that its signature names.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_TEST_FUZZ_TORCHCODE_H
#define TC_TEST_FUZZ_TORCHCODE_H

#include "Loop.h"

#include <string>

namespace tc::fuzz {

/// A finite number of the kind that code writes.
std::string oddLiteral(Random &random);

/// "aten.add.Tensor": an operator of PyTorch's, as archives of torch.export name them.
std::string anyOperator(Random &random);

/// An expression of sizes as torch.export writes it, such as "Mod(3*s0, s1 - 1)".
std::string sizeExpression(Random &random, int depth = 0);

/// Changes the text of a module of code; `donor` is that of another archive, or "".
void mutateCode(std::string &text, const std::string &donor, Random &random);

} // namespace tc::fuzz

#endif // TC_TEST_FUZZ_TORCHCODE_H
