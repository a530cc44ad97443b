//===- GraphOps.td - a model as its file says it --------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_GRAPH_IR_GRAPHOPS
#define TC_DIALECT_GRAPH_IR_GRAPHOPS

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/CallInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Graph_Dialect : Dialect {
  let name = "graph";
  let cppNamespace = "::tc::graph";
  let dependentDialects = ["::tc::base::TCDialect"];
  let summary = "A model as its file says it: nodes with domain, type, opset and attributes";
  let description = [{
    What front ends make. Nothing is interpreted: a node is a name with operands, attributes and subgraphs, and its result
    types are what the file declares or what the front end could infer, to be checked by the conversion to `prim`.

    Integers without a sign are signed; `ui8` to `ui64` are unsigned; `i1` is bool. Other types are in the `tc` dialect.

    Attributes of the module: `graph.producer` (string), `graph.ir_version` (i64), `graph.metadata` (dictionary of strings:
    metadata_props), `graph.name` (string). Of a function's arguments and results: `graph.name` (string: the name in the model), `graph.dims`
    (array of strings: the name of each symbolic dimension, "" for none; for sequences and optionals of the tensor inside),
    `graph.denotation` (string). Of arguments: `graph.default` (constant that the caller may override). Of results:
    `graph.declared_type` (type: what the file declares, where the value's type differs).
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
}

//===--- attributes -------------------------------------------------------------------------------------------------===//

def Graph_RefAttr : AttrDef<Graph_Dialect, "Ref"> {
  let mnemonic = "ref";
  let summary = "The value of an attribute parameter of the enclosing function: #graph.ref<\"alpha\", \"FLOAT\">";
  let parameters = (ins StringRefParameter<"parameter of the function">:$param, StringRefParameter<"ONNX name of its type">:$kind);
  let assemblyFormat = "`<` $param `,` $kind `>`";
}
def Graph_SparseAttr : AttrDef<Graph_Dialect, "Sparse", [TypedAttrInterface]> {
  let mnemonic = "sparse";
  let summary = "A constant tensor given by its non-zero elements";
  let description = [{
    `#graph.sparse<#tc.data<...> : tensor<2xf32>, #tc.data<...> : tensor<2xi64>> : tensor<3x4xf32>`: values of NNZ elements,
    their indices into the flattened tensor [NNZ] or per dimension [NNZ, rank].
    (C1) values are [NNZ] of the tensor's element type; indices are i64, [NNZ] or [NNZ, rank].
  }];
  let parameters = (ins "::tc::base::DataAttr":$values, "::tc::base::DataAttr":$indices,
                        AttributeSelfTypeParameter<"the dense type", "::mlir::RankedTensorType">:$type);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

//===--- ops --------------------------------------------------------------------------------------------------------===//

class Graph_Op<string mnemonic, list<Trait> traits = []> : Op<Graph_Dialect, mnemonic, traits>;

def Graph_FuncOp : Graph_Op<"func", [FunctionOpInterface, IsolatedFromAbove, OpAsmOpInterface, SingleBlock]> {
  let summary = "The graph of a model (@main), or a function that the model brings along (private)";
  let description = [{
    `opsets` maps each domain to the version that the body's nodes are written against. A model-local function has
    `domain` and `op_type` (and `overload`): nodes of that name call it, and carry its symbol. Its types are !tc.unknown,
    since ONNX functions are untyped. `attr_params` lists its attribute parameters; entries of `attr_defaults` need not
    be given by the caller. Parameters appear in the body as #graph.ref.

    ```mlir
    graph.func @main(%x: tensor<?x3xf32> {graph.dims = ["batch", ""], graph.name = "x"})
        -> (tensor<?x3xf32> {graph.name = "y"}) attributes {opsets = {ai.onnx = 17 : i64}} {
      %0 = graph.node "ai.onnx":"Relu" opset 17(%x) : (tensor<?x3xf32>) -> tensor<?x3xf32>
      graph.yield %0 : tensor<?x3xf32>
    }
    ```
    (C1) The types of graph.yield are the results of the function. (C2) Values have graph types: tensor, !tc types, none.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type,
                       OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs,
                       OptionalAttr<StrAttr>:$sym_visibility, DefaultValuedAttr<DictionaryAttr, "{}">:$opsets,
                       OptionalAttr<StrAttr>:$domain, OptionalAttr<StrAttr>:$op_type, OptionalAttr<StrAttr>:$overload,
                       OptionalAttr<StrArrayAttr>:$attr_params, OptionalAttr<DictionaryAttr>:$attr_defaults);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::FunctionType":$type)>];
  let extraClassDeclaration = [{
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    /// Name in the model of an argument or result; "" where it has none.
    ::llvm::StringRef getArgName(unsigned index);
    ::llvm::StringRef getResultName(unsigned index);
    /// Symbolic names of the dims of an argument or result; null where it has none.
    ::mlir::ArrayAttr getArgDims(unsigned index);
    ::mlir::ArrayAttr getResultDims(unsigned index);
    /// The default of an argument that the caller may leave out, or null.
    ::mlir::TypedAttr getArgDefault(unsigned index);
  }];
}

def Graph_YieldOp : Graph_Op<"yield", [Pure, Terminator, ReturnLike, ParentOneOf<["FuncOp", "NodeOp"]>]> {
  let summary = "The outputs of a graph or subgraph";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

def Graph_NoneOp : Graph_Op<"none", [Pure]> {
  let summary = "Stands for an optional operand that is not given";
  let results = (outs NoneType:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Graph_ConstantOp : Graph_Op<"constant", [Pure, ConstantLike, AllTypesMatch<["value", "result"]>]> {
  let summary = "An initializer: #tc.data, or #graph.sparse";
  let arguments = (ins TypedAttrInterface:$value);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$value attr-dict";
  let hasFolder = 1;
  let builders = [OpBuilder<(ins "::mlir::TypedAttr":$value), [{ build($_builder, $_state, value.getType(), value); }]>];
}

def Graph_NodeOp : Graph_Op<"node", [OpAsmOpInterface, RecursivelySpeculatable]> {
  let summary = "One node of the model, uninterpreted";
  let description = [{
    ```mlir
    %y = graph.node "ai.onnx":"Gemm" opset 17(%a, %b) {alpha = 5.000000e-01 : f32} : (...) -> tensor<2x3xf32>
    %z = graph.node "ai.onnx":"If" opset 17(%c) graphs "else_branch"() {...}, "then_branch"() {...} : (tensor<i1>) -> tensor<2xf32>
    %w = graph.node "my.ops":"Twice" opset 1 calls @my.ops_Twice(%a) : (!tc.unknown) -> !tc.unknown
    ```
    `opset` is the version of the domain that the enclosing function imports, not the version that introduced the
    operator. Absent optional operands are graph.none; absent optional results have type none. ONNX attributes are entries
    of `attrs`: INT i64, FLOAT f32, STRING string, TENSOR #tc.data, SPARSE_TENSOR #graph.sparse, TYPE_PROTO type,
    INTS array<i64>, FLOATS array<f32>, STRINGS and others arrays, references to parameters #graph.ref. GRAPH attributes
    are regions, named by `region_names`, whose arguments are the subgraph's inputs; they use outer values directly. The
    k-th graph of a GRAPHS attribute "g" is the region "g.k".

    (C1) domain and type are not empty, opset >= 1. (C2) Each region has a distinct name, which is no attribute's.
    (C3) Each region is one block that ends with graph.yield. (C4) Operands and results have graph types: tensor, !tc
    types, none.
  }];
  let arguments = (ins StrAttr:$domain, StrAttr:$op_type, I64Attr:$opset, OptionalAttr<StrAttr>:$overload,
                       OptionalAttr<FlatSymbolRefAttr>:$callee, DefaultValuedAttr<DictionaryAttr, "{}">:$attrs,
                       DefaultValuedAttr<StrArrayAttr, "{}">:$region_names, Variadic<AnyType>:$inputs);
  let results = (outs Variadic<AnyType>:$outputs);
  let regions = (region VariadicRegion<SizedRegion<1>>:$graphs);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::llvm::StringRef":$domain, "::llvm::StringRef":$opType, "int64_t":$opset,
                                 "::mlir::TypeRange":$outputs, "::mlir::ValueRange":$inputs,
                                 CArg<"::llvm::ArrayRef<::mlir::NamedAttribute>", "{}">:$attrs,
                                 CArg<"::llvm::ArrayRef<::llvm::StringRef>", "{}">:$regionNames)>];
  let extraClassDeclaration = [{
    /// Operand `index`, or null where it is absent (graph.none, or beyond the last one).
    ::mlir::Value getInput(unsigned index);
    bool hasInput(unsigned index) { return static_cast<bool>(getInput(index)); }
    /// Whether result `index` exists, that is, is named in the model.
    bool hasOutput(unsigned index);
    /// The subgraph of this attribute name, or null.
    ::mlir::Region *getGraph(::llvm::StringRef name);
    /// ONNX attributes. The typed readers give the default where the attribute is absent or of another kind.
    ::mlir::Attribute getNodeAttr(::llvm::StringRef name) { return getAttrs().get(name); }
    int64_t getInt(::llvm::StringRef name, int64_t defaultValue);
    double getFloat(::llvm::StringRef name, double defaultValue);
    ::llvm::StringRef getString(::llvm::StringRef name, ::llvm::StringRef defaultValue);
    std::optional<::llvm::ArrayRef<int64_t>> getInts(::llvm::StringRef name);
    std::optional<::llvm::ArrayRef<float>> getFloats(::llvm::StringRef name);
    std::optional<::llvm::SmallVector<::llvm::StringRef>> getStrings(::llvm::StringRef name);
    ::tc::base::DataAttr getTensor(::llvm::StringRef name);
    /// "ai.onnx.Gemm", for messages and registries.
    std::string getFullName() { return (getDomain() + "." + getOpType()).str(); }
    /// The name of the node in the model, for messages; "Gemm#17" where it has none.
    std::string getNodeName();
  }];
}

#endif // TC_DIALECT_GRAPH_IR_GRAPHOPS
