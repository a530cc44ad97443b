//===- tc-interpret.cpp - evaluate prim IR on .npz files, for tests -----------------------------------------------===//
//
//   tc-interpret FILE.mlir [--passes LIST] [--function NAME]
//     [--inputs X.npz | --random-inputs SEED [--dim NAME=SIZE]...] [--outputs Y.npz] [--f64] [--print] [--trace]
//     [--against REFERENCE.mlir | --verify] [--max-rel R]
//
// Runs a function of prim or fused prim (any phase up to schedule) in the interpreter. Arrays are named after the
// arguments' and results' attribute `tc.name`, or input_0, output_0, ... by position. bf16 and 8-bit floats are float32
// arrays in files. A test's tool: it is not installed.
//
// --against compares the outputs with those of another phase of the same function, evaluated in float64; --verify
// compares with float64 evaluation of the file itself and names the first node that is off.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Prim/Interpreter/Interpreter.h"
#include "tc/Dialect/TC/IR/Dtypes.h"
#include "tc/Dialect/TC/IR/TC.h"
#include "tc/Driver/Register.h"
#include "tc/Run/Npz.h"
#include "tc/Support/ToolFiles.h"
#include "tc/Target/Reference/Reference.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

#include <CLI/CLI.hpp>
#include <cstring>

using namespace mlir;
using namespace tc::prim;

namespace {

struct Options {
  std::string file, function, inputs, outputs, passes, against;
  std::vector<std::string> dims;
  std::optional<uint64_t> seed;
  double maxRel = 1e-5;
  bool inDouble = false, print = false, trace = false, verify = false;
};

/// The element type of an array; null where prim has none.
Type getElementType(tcrt_dtype_t dtype, MLIRContext *context) {
  if (dtype == TCRT_DTYPE_BOOL)
    return IntegerType::get(context, 1);
  if (dtype == TCRT_DTYPE_F16)
    return Float16Type::get(context);
  if (dtype == TCRT_DTYPE_F32)
    return Float32Type::get(context);
  if (dtype == TCRT_DTYPE_F64)
    return Float64Type::get(context);
  if (dtype == TCRT_DTYPE_C64 || dtype == TCRT_DTYPE_C128)
    return ComplexType::get(getElementType(dtype == TCRT_DTYPE_C64 ? TCRT_DTYPE_F32 : TCRT_DTYPE_F64, context));
  if (!tc::run::isInteger(dtype))
    return Type();
  return IntegerType::get(context, tcrt_dtype_bits(dtype),
                          tc::run::isSigned(dtype) ? IntegerType::Signless : IntegerType::Unsigned);
}

llvm::Expected<Tensor> toTensor(const std::string &name, const tc::run::Tensor &array, Type expected) {
  Type type = getElementType(array.dtype, expected.getContext());
  if (!type)
    return llvm::createStringError("array \"" + name + "\" has dtype " + tcrt_dtype_name(array.dtype) +
                                   ", which is not supported");
  char *bytes;
  Tensor tensor = allocateTensor(type, array.dims, bytes);
  std::memcpy(bytes, array.data.data(), array.data.size());
  // Integers narrower than a byte are bytes in files.
  if (isa<IntegerType>(type) && isa<IntegerType>(expected) && expected.getIntOrFloatBitWidth() < 8)
    return fromInts(expected, array.dims, toInts(tensor));
  return tensor;
}

tc::run::Tensor toArray(const Tensor &tensor) {
  tc::run::Tensor array;
  array.dtype = tc::run::numpyDtype(tc::base::getDtype(tensor.elementType));
  array.dims.assign(tensor.shape.begin(), tensor.shape.end());
  Tensor held =
      array.dtype == TCRT_DTYPE_F32 ? convertFloats(tensor, Float32Type::get(tensor.elementType.getContext())) : tensor;
  array.data.assign(held.bytes.get(), held.bytes.get() + held.sizeBytes());
  return array;
}

void printTensor(StringRef name, const Tensor &tensor) {
  llvm::outs() << name << ": " << tensor.getType() << " [";
  if (isa<ComplexType>(tensor.elementType))
    llvm::interleaveComma(toDoubles(asParts(tensor)), llvm::outs(),
                          [](double v) { llvm::outs() << llvm::format("%.9g", v); });
  else if (isa<FloatType>(tensor.elementType))
    llvm::interleaveComma(toDoubles(tensor), llvm::outs(), [](double v) { llvm::outs() << llvm::format("%.9g", v); });
  else if (tensor.elementType.isUnsignedInteger(64))
    llvm::interleaveComma(toInts(tensor), llvm::outs(), [](int64_t v) { llvm::outs() << uint64_t(v); });
  else
    llvm::interleaveComma(toInts(tensor), llvm::outs());
  llvm::outs() << "]\n";
}

std::string getName(DictionaryAttr attributes, StringRef fallback, unsigned index) {
  if (attributes)
    if (auto name = attributes.getAs<StringAttr>("tc.name"))
      return name.str();
  return (fallback + "_" + Twine(index)).str();
}

llvm::Expected<std::vector<Tensor>> readInputs(func::FuncOp func, const Options &options) {
  if (options.seed) {
    llvm::StringMap<int64_t> sizes;
    for (StringRef dim : options.dims) {
      auto [name, text] = dim.split('=');
      int64_t size;
      if (text.getAsInteger(10, size))
        return llvm::createStringError("--dim takes NAME=SIZE");
      sizes[name] = size;
    }
    return tc::target::makeRandomInputs(func, sizes, *options.seed);
  }
  tc::run::NamedTensors arrays;
  if (!options.inputs.empty())
    arrays = tc::run::readNpz(options.inputs);
  std::vector<Tensor> inputs;
  for (auto [i, type] : llvm::enumerate(func.getArgumentTypes())) {
    std::string name = getName(func.getArgAttrDict(i), "input", i), position = "input_" + std::to_string(i);
    auto it = llvm::find_if(arrays, [&](const auto &array) { return array.first == name || array.first == position; });
    if (it == arrays.end())
      return llvm::createStringError("no array for input \"" + name + "\" in \"" + options.inputs + "\"");
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor)
      return llvm::createStringError("input \"" + name + "\" is no ranked tensor");
    llvm::Expected<Tensor> input = toTensor(it->first, it->second, tensor.getElementType());
    if (!input)
      return input.takeError();
    inputs.push_back(std::move(*input));
  }
  return inputs;
}

func::FuncOp findFunction(ModuleOp module, StringRef name) {
  for (auto candidate : module.getOps<func::FuncOp>())
    if (!candidate.isExternal() && (name.empty() || candidate.getName() == name))
      return candidate;
  return {};
}

/// Compares the file's function with a reference in float64.
llvm::Error compare(func::FuncOp func, ArrayRef<Tensor> inputs, const Options &options) {
  if (options.verify) {
    auto finding = tc::target::verify(func, inputs, options.maxRel,
                                      [&](ModuleOp probe) { return interpret(findFunction(probe, ""), inputs); });
    if (!finding)
      return finding.takeError();
    if (*finding)
      return llvm::createStringError((*finding)->what);
    llvm::outs() << "all outputs agree\n";
    return llvm::Error::success();
  }
  auto module = tc::base::readModule(func.getContext(), options.against);
  if (!module)
    return module.takeError();
  func::FuncOp reference = findFunction(**module, options.function);
  if (!reference)
    return llvm::createStringError(options.against + " has no function to run");
  InterpretOptions inDouble;
  inDouble.evaluateInDouble = true;
  llvm::Expected<std::vector<Tensor>> want = interpret(reference, inputs, inDouble);
  if (!want)
    return want.takeError();
  llvm::Expected<std::vector<Tensor>> got = interpret(func, inputs);
  if (!got)
    return got.takeError();
  if (got->size() != want->size())
    return llvm::createStringError("the functions differ in the number of outputs");
  for (size_t i = 0; i < want->size(); ++i)
    if (std::string what = tc::target::compareTensors((*got)[i], (*want)[i], options.maxRel); !what.empty())
      return llvm::createStringError("output " + std::to_string(i) + ": " + what);
  llvm::outs() << "all outputs agree\n";
  return llvm::Error::success();
}

llvm::Error run(const Options &options) {
  if (std::string sentence = tc::findReplacedFile({{"the module", options.file},
                                                   {"the file of --inputs", options.inputs},
                                                   {"the file of --against", options.against}},
                                                  {{"--outputs", options.outputs}});
      !sentence.empty())
    return llvm::createStringError("tc-interpret: error: " + sentence);
  DialectRegistry registry;
  tc::driver::registerAllDialects(registry);
  MLIRContext context(registry);
  llvm::Expected<OwningOpRef<ModuleOp>> module = tc::base::readModule(&context, options.file);
  if (!module)
    return module.takeError();
  if (!options.passes.empty()) {
    PassManager manager(&context);
    if (failed(parsePassPipeline(options.passes, manager)) || failed(manager.run(**module)))
      return llvm::createStringError(options.file + ": error: the passes failed");
  }
  func::FuncOp func = findFunction(**module, options.function);
  if (!func)
    return llvm::createStringError(options.file + ": error: there is no function to run");
  llvm::Expected<std::vector<Tensor>> inputs = readInputs(func, options);
  if (!inputs)
    return llvm::createStringError(options.file + ": error: " + llvm::toString(inputs.takeError()));
  if (options.verify || !options.against.empty()) {
    if (llvm::Error error = compare(func, *inputs, options))
      return llvm::createStringError(options.file + ": error: " + llvm::toString(std::move(error)));
    return llvm::Error::success();
  }
  InterpretOptions interpretOptions;
  interpretOptions.evaluateInDouble = options.inDouble;
  AsmState names(func);
  if (options.trace)
    interpretOptions.onValue = [&](Value value, const Tensor &tensor) {
      std::string name;
      llvm::raw_string_ostream stream(name);
      value.printAsOperand(stream, names);
      printTensor(name, tensor);
      return llvm::Error::success();
    };
  llvm::Expected<std::vector<Tensor>> outputs = interpret(func, *inputs, interpretOptions);
  if (!outputs)
    return llvm::createStringError(options.file + ": error: " + llvm::toString(outputs.takeError()));
  tc::run::NamedTensors arrays;
  for (auto [i, output] : llvm::enumerate(*outputs)) {
    std::string name = getName(func.getResultAttrDict(i), "output", i);
    if (options.print || options.outputs.empty())
      printTensor(name, output);
    arrays.emplace_back(name, toArray(output));
  }
  if (!options.outputs.empty())
    tc::run::writeNpz(options.outputs, arrays);
  return llvm::Error::success();
}

} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  tc::driver::registerAllPasses();
  Options options;
  CLI::App app("Evaluates prim IR in the interpreter, for tests");
  app.add_option("file", options.file, "module of prim or fused prim")->required();
  app.add_option("--function", options.function, "function to run; default: the first");
  app.add_option("--passes", options.passes,
                 "passes to run before, as in --pass-pipeline without the outer parentheses");
  app.add_option("--inputs", options.inputs, ".npz with the inputs");
  app.add_option("--random-inputs", options.seed, "make inputs from this seed");
  app.add_option("--dim", options.dims, "NAME=SIZE of a symbol for --random-inputs");
  app.add_option("--against", options.against, "compare with this file's function in float64");
  app.add_flag("--verify", options.verify, "compare with float64 and name the first node that is off");
  app.add_option("--max-rel", options.maxRel, "error relative to the largest value that is allowed");
  app.add_option("--outputs", options.outputs, ".npz for the outputs");
  app.add_flag("--f64", options.inDouble, "hold every floating value as float64 and write float64 outputs");
  app.add_flag("--print", options.print, "print the outputs even where --outputs is given");
  app.add_flag("--trace", options.trace, "print every value");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) ? 1 : 0;
  }
  try {
    if (llvm::Error error = run(options)) {
      llvm::errs() << llvm::toString(std::move(error)) << "\n";
      return 1;
    }
  } catch (const tc::run::Failure &failure) {
    llvm::errs() << failure.message << "\n";
    return failure.code;
  }
  return 0;
}
