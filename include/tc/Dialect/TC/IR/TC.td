//===- TC.td - the base dialect: constants by reference, types without a builtin form -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_TC_IR_TC
#define TC_DIALECT_TC_IR_TC

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/OpBase.td"

def TC_Dialect : Dialect {
  let name = "tc";
  let cppNamespace = "::tc::base";
  let summary = "What all levels share: constants by reference, and types that MLIR does not have";
  let description = [{
    The dialect instance of a context owns the BlobStore with the bytes of all `#tc.data` of that context. Small buffers
    that the compiler made are printed as resources of the module, so that the text of a small module is complete; large
    ones and mapped files go to a file beside it (base::writeModule, base::readModule).
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    /// The bytes of this context's constants. Thread safe.
    ::tc::BlobStore &getBlobStore() { return *blobStore; }
  private:
    std::unique_ptr<::tc::BlobStore> blobStore;
  public:
  }];
}

//===--- types ------------------------------------------------------------------------------------------------------===//

class TC_Type<string name, string typeMnemonic> : TypeDef<TC_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def TC_StringType : TC_Type<"String", "string"> {
  let summary = "Element type of tensors of byte strings, UTF-8 by convention: tensor<2x!tc.string>";
}
def TC_SeqType : TC_Type<"Seq", "seq"> {
  let summary = "A sequence of values of one type: !tc.seq<tensor<?xf32>>";
  let parameters = (ins "::mlir::Type":$elementType);
  let assemblyFormat = "`<` $elementType `>`";
}
def TC_OptType : TC_Type<"Opt", "opt"> {
  let summary = "A value or nothing: !tc.opt<tensor<?xf32>>";
  let parameters = (ins "::mlir::Type":$elementType);
  let assemblyFormat = "`<` $elementType `>`";
}
def TC_MapType : TC_Type<"Map", "map"> {
  let summary = "A map from integers or strings, as ai.onnx.ml's classifiers give: !tc.map<i64, tensor<f32>>";
  let parameters = (ins "::mlir::Type":$keyType, "::mlir::Type":$valueType);
  let assemblyFormat = "`<` $keyType `,` $valueType `>`";
}
def TC_SparseType : TC_Type<"Sparse", "sparse"> {
  let summary = "A sparse tensor value of the dense type `dense`: !tc.sparse<tensor<3x4xf32>>";
  let parameters = (ins "::mlir::Type":$dense);
  let assemblyFormat = "`<` $dense `>`";
}
def TC_UnknownType : TC_Type<"Unknown", "unknown"> {
  let summary = "A value whose type the file does not tell; only in `graph`";
}

//===--- attributes -------------------------------------------------------------------------------------------------===//

def TC_DataAttr : AttrDef<TC_Dialect, "Data", [TypedAttrInterface]> {
  let mnemonic = "data";
  let summary = "A tensor constant's bytes, by reference";
  let description = [{
    `#tc.data<"model.onnx", 4242, 24, "0123456789abcdef0123456789abcdef"> : tensor<2x3xf32>` is the 24 bytes at offset
    4242 of the blob "model.onnx" with that content hash (tc::contentHash).

    Bytes: row-major and little-endian, without padding between elements; i1 has one byte (0 or 1); complex is real, then
    imaginary; 4-bit and 2-bit types are packed two and four to a byte, the first element in the low bits, the last byte
    padded with zero bits. A tensor of !tc.string with n elements is n + 1 offsets of 8 bytes, counted from the end of
    these offsets, then the characters; element i is [offset i, offset i + 1). Bytes have no alignment: use memcpy.

    Two attributes with equal hash and type are equal constants, although the attributes may differ (same bytes at
    two places). A blob that is missing or too short is no error of the attribute: getBytes says so.

    (C1) The type is a static ranked tensor without encoding whose elements have a known size, or !tc.string.
    (C2) length is the type's packed size; for strings at least 8 * (n + 1).  (C3) hash is 32 hex digits.
  }];
  let parameters = (ins StringRefParameter<"key in the BlobStore">:$blob, "uint64_t":$offset, "uint64_t":$length,
                        StringRefParameter<"content hash">:$hash,
                        AttributeSelfTypeParameter<"the tensor type", "::mlir::RankedTensorType">:$type);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def TC_CostAttr : AttrDef<TC_Dialect, "Cost"> {
  let mnemonic = "cost";
  let summary = "The work of one execution of a kernel, as size expressions";
  let description = [{
    `#tc.cost<flops = ()[s0] -> (s0 * 512), bytes = 4096>`: operations and bytes that must be read and written, over the symbols of the
    enclosing function (prim.symbols). A constant is written as its number. The host program evaluates what depends on
    symbols, so that launches, explain and profile know the work of dynamic models too.

    (C1) Each map has no dims and one result.
  }];
  let parameters = (ins "::mlir::AffineMap":$flops, "::mlir::AffineMap":$bytes);
  let builders = [AttrBuilderWithInferredContext<(ins "::mlir::AffineExpr":$flops, "::mlir::AffineExpr":$bytes)>];
  let assemblyFormat = "`<` `flops` `=` custom<SizeMap>($flops) `,` `bytes` `=` custom<SizeMap>($bytes) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    ::mlir::AffineExpr getFlopsExpr() const { return getFlops().getResult(0); }
    ::mlir::AffineExpr getBytesExpr() const { return getBytes().getResult(0); }
  }];
}

#endif // TC_DIALECT_TC_IR_TC
