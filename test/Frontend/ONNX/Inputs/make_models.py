# Writes the small ONNX files of the front end's tests: make_models.py good|bad OUT_DIR
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

out = sys.argv[2]
os.makedirs(out, exist_ok=True)
F = T.FLOAT


def vi(name, dims=("n", 3), dtype=F):
    return h.make_tensor_value_info(name, dtype, dims)


def model(nodes, inputs=None, outputs=None, initializers=(), opset=17, ir=10, **kwargs):
    domains = kwargs.pop("domains", {})
    graph = h.make_graph(nodes, "g", inputs or [vi("x")], outputs or [vi("y")], list(initializers),
                         value_info=kwargs.pop("value_info", []))
    graph.sparse_initializer.extend(kwargs.pop("sparse", []))
    opsets = [h.make_opsetid("", opset)] + [h.make_opsetid(d, v) for d, v in domains.items()]
    return h.make_model(graph, opset_imports=opsets, ir_version=ir, **kwargs)


def save(name, m):
    with open(os.path.join(out, name + ".onnx"), "wb") as f:
        f.write(m if isinstance(m, bytes) else m.SerializeToString())


def node(op, inputs, outputs, name=None, **attrs):
    return h.make_node(op, inputs, outputs, name=name, **attrs)


def array(name, value, dtype=np.float32):
    return nh.from_array(np.asarray(value, dtype), name)


relu = node("Relu", ["x"], ["y"], "relu")


def external(name, dims, location, **entries):
    tensor = T(name=name, data_type=F, dims=dims, data_location=T.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def good():
    m = model([relu], producer_name="test")
    h.set_model_props(m, {"author": "me", "a": "b"})
    save("plain", m)

    # Defaults, absent operands and results, attributes of all kinds, an output that is an input, one twice.
    any_attrs = dict(i=3, f=0.5, s=b"text\x00\xff", ints=[1, 2], floats=[1.0, 2.0], strings=["a", "b"],
                     t=array("t", [1, 2, 3]), sp=h.make_sparse_tensor(array("v", [5.0]), array("i", [1], np.int64), [4]),
                     tp=h.make_tensor_type_proto(T.INT64, ["k", 2]))
    save("features", model(
        [node("Clip", ["x", "", "max"], ["c"], "clip"), h.make_node("Any", ["c"], ["a", "", "b"], domain="my.ops", **any_attrs),
         node("Relu", ["c"], ["y"])],
        inputs=[vi("x"), vi("max", []), vi("unused", [], T.STRING)],
        outputs=[vi("y"), vi("y"), vi("x", ["n", 3]), vi("w", [2])],
        initializers=[array("max", 6.0), array("w", [1.5, -2.0])], domains={"my.ops": 3},
        sparse=[h.make_sparse_tensor(array("sparse", [1.0, 2.0]), array("i", [[0, 1], [2, 0]], np.int64), [3, 4])]))
    save("ir3", model([node("Add", ["x", "w"], ["y"])], inputs=[vi("x"), vi("w", [3])], initializers=[array("w", [1, 2, 3])],
                      ir=3, opset=8))

    # Every element type, by its typed field and as raw data.
    typed = []
    for dtype in sorted(T.DataType.values()):
        if dtype == 0:
            continue
        name = T.DataType.Name(dtype)
        values = ["ab", "", "c"] if dtype == T.STRING else [1, 0, 1]
        typed.append(h.make_tensor("t_" + name, dtype, [3], values))
    save("types", model([relu], initializers=typed))
    save("raw", model([relu], initializers=[array("big", np.arange(1000)), array("i64", np.arange(300), np.int64),
                                            h.make_tensor("floats", F, [500], np.arange(500, dtype=np.float32)),
                                            h.make_tensor("f6", T.FLOAT6E2M3, [4], b"\x81\x30\x10", raw=True)]))

    seq = h.make_sequence_type_proto(h.make_tensor_type_proto(F, ["k"]))
    values = [h.make_value_info("s", seq), h.make_value_info("o", h.make_optional_type_proto(seq)),
              h.make_value_info("m", onnx.TypeProto(map_type=onnx.TypeProto.Map(
                  key_type=T.STRING, value_type=h.make_tensor_type_proto(T.INT64, [])))),
              h.make_value_info("sp", h.make_sparse_tensor_type_proto(F, [3, 4])), vi("nr", None), vi("x")]
    save("values", model([relu], inputs=values))

    then = h.make_graph([node("Add", ["x", "one"], ["t"], "in_then")], "then", [], [vi("t")], [array("one", [1.0])])
    other = h.make_graph([node("Neg", ["x"], ["e"], "in_else")], "else", [], [vi("e")])
    body = h.make_graph([node("If", ["cond"], ["b"], "if", then_branch=then, else_branch=other),
                         node("Identity", ["cond"], ["c2"])], "body",
                        [vi("i", [], T.INT64), vi("cond", [], T.BOOL), vi("state")], [vi("c2", [], T.BOOL), vi("b")])
    save("control", model([node("Loop", ["", "c", "x"], ["y"], "loop", body=body)], inputs=[vi("x"), vi("c", [], T.BOOL)]))

    function = h.make_function("my", "Twice", ["a"], ["b"], [node("LeakyRelu", ["a"], ["t"]), node("Add", ["t", "t"], ["b"])],
                               [h.make_opsetid("", 17)], attributes=["alpha"], attribute_protos=[h.make_attribute("beta", 2.0)])
    ref = onnx.AttributeProto(name="alpha", ref_attr_name="alpha", type=onnx.AttributeProto.FLOAT)
    function.node[0].attribute.append(ref)
    save("function", model([h.make_node("Twice", ["x"], ["y"], name="call", domain="my", alpha=0.1)], functions=[function],
                           domains={"my": 1}))

    with open(os.path.join(out, "weights.bin"), "wb") as f:
        f.write(b"\0" * 8 + np.arange(4, dtype=np.float32).tobytes())
    save("external", model([relu], initializers=[external("w", [4], "weights.bin", offset=8, length=16)]))

    # For expandOnnxFunction: a plain body, ones that depend on the context, one with a subgraph that captures a value.
    save("expand", model([node("MeanVarianceNormalization", ["x"], ["y"], "mvn", axes=[0])]))
    save("expand_context", model([node("Clip", ["x", "lo"], ["c"], "clip"), node("Softmax", ["c"], ["y"], "soft", axis=1)],
                                 inputs=[vi("x"), vi("lo", [])]))
    heads = [vi(name, [1, 2, 3, 4]) for name in "qkv"]
    save("expand_preview", model([h.make_node("FlexAttention", ["q", "k", "v"], ["y"], name="flex", domain="ai.onnx.preview")],
                                 inputs=heads, outputs=[vi("y", [1, 2, 3, 4])], opset=26, ir=13, domains={"ai.onnx.preview": 1}))
    seq_body = h.make_graph([node("Add", ["e", "x"], ["r"], "in_body")], "body", [vi("e")], [vi("r")])
    seq_of = h.make_sequence_type_proto(h.make_tensor_type_proto(F, ["n", 3]))
    save("expand_graph", model([node("SequenceMap", ["s"], ["y"], "map", body=seq_body)],
                               inputs=[vi("x"), h.make_value_info("s", seq_of)], outputs=[h.make_value_info("y", seq_of)]))


def field(number, data):
    """A length-delimited field. Python's protobuf writes nothing as deep as what is wanted here."""
    length, out_bytes = len(data), bytes([number << 3 | 2])
    while length >= 0x80:
        out_bytes += bytes([length & 0x7F | 0x80])
        length >>= 7
    return out_bytes + bytes([length]) + data


def nested_graphs(depth):
    graph = model([relu]).graph.SerializeToString()
    for _ in range(depth):
        attribute = field(1, b"then_branch") + b"\xa0\x01\x05" + field(6, graph)
        graph = field(1, field(1, b"c") + field(2, b"y") + field(4, b"If") + field(5, attribute)) + field(2, b"g")
    return graph


def nested_type(depth):
    value = h.make_tensor_type_proto(F, [1]).SerializeToString()
    for _ in range(depth):
        value = field(4, field(1, value))
    return value


def bad():
    save("empty", b"")
    save("text", b"this is not a model, but a text of some length\n" * 3)
    plain = model([relu], initializers=[array("w", np.arange(1000))]).SerializeToString()
    save("truncated", plain[: len(plain) // 2])
    save("no_graph", onnx.ModelProto(ir_version=10, opset_import=[h.make_opsetid("", 17)]))
    save("no_ir", onnx.ModelProto(graph=model([relu]).graph))
    save("ir", model([relu], ir=99))
    save("opset", model([relu], opset=99))
    save("opset_ml", model([relu], domains={"ai.onnx.ml": 77}))
    no_opset = model([relu])
    del no_opset.opset_import[:]
    save("no_opset", no_opset)
    save("domain", model([h.make_node("Foo", ["x"], ["y"], name="foo", domain="not.there")]))

    chain = [node("Relu", ["z"], ["y"], "first"), node("Neg", ["x"], ["z"], "second")]
    save("disorder", model(chain))
    save("cycle", model([node("Add", ["x", "c"], ["a"], "na"), node("Relu", ["a"], ["b"], "nb"), node("Neg", ["b"], ["c"], "nc"),
                         node("Abs", ["c"], ["y"])]))
    save("self", model([node("Add", ["x", "y"], ["y"], "loop")]))
    save("undefined", model([node("Add", ["x", "nothing"], ["y"], "add")]))
    save("undefined_output", model([relu], outputs=[vi("z")]))
    save("twice", model([relu, node("Neg", ["x"], ["y"], "neg")]))
    save("twice_input", model([relu], inputs=[vi("x"), vi("x")]))
    save("twice_init", model([relu], initializers=[array("w", 1.0), array("w", 2.0)]))
    save("init_node", model([relu], initializers=[array("y", 1.0)]))
    save("inputs", model([node("Relu", ["x", "x"], ["y"], "relu2")]))
    save("attr_unknown", model([node("Relu", ["x"], ["y"], "relu", alpha=1)]))
    save("attr_kind", model([node("LeakyRelu", ["x"], ["y"], "leaky", alpha=1)]))
    save("attr_missing", model([node("Cast", ["x"], ["y"], "cast")]))
    save("attr_twice", model([h.make_node("Foo", ["x"], ["y"], name="foo", domain="my")], domains={"my": 1}))
    m = onnx.load(os.path.join(out, "attr_twice.onnx"))
    m.graph.node[0].attribute.extend([h.make_attribute("a", 1), h.make_attribute("a", 2)])
    save("attr_twice", m)
    save("no_type", model([node("", ["x"], ["y"], "nameless")]))
    save("deprecated", model([node("Upsample", ["x", "s"], ["y"], "up")], inputs=[vi("x"), vi("s", [2])]))
    head = model([relu], inputs=[vi("x"), vi("c", [], T.BOOL)]).SerializeToString()
    save("deep", head + field(7, nested_graphs(70)))
    save("deep_type", head + field(7, field(11, field(1, b"d") + field(2, nested_type(80)))))
    save("deeper", head + field(7, nested_graphs(5000)))
    save("dtype", model([relu], initializers=[T(name="w", data_type=77, dims=[1], raw_data=b"abcd")]))
    save("raw_size", model([relu], initializers=[T(name="w", data_type=F, dims=[3], raw_data=b"abcd")]))
    save("raw_size_big", model([relu], initializers=[T(name="w", data_type=F, dims=[1000], raw_data=b"abcd" * 999)]))
    save("typed_size", model([relu], initializers=[T(name="w", data_type=F, dims=[3], float_data=[1, 2])]))
    save("negative", model([relu], initializers=[T(name="w", data_type=F, dims=[-3], float_data=[1, 2])]))
    save("huge", model([relu], initializers=[T(name="w", data_type=F, dims=[2**40, 2**40])]))
    save("attr_tensor", model([node("Constant", [], ["k"], "const", value=T(data_type=F, dims=[2], raw_data=b"abcd")), relu]))

    with open(os.path.join(out, "short.bin"), "wb") as f:
        f.write(b"\0" * 8)
    for name, tensor in {
        "ext_missing": external("w", [4], "gone.bin"),
        "ext_short": external("w", [4], "short.bin"),
        "ext_offset": external("w", [2], "short.bin", offset="18446744073709551608"),
        "ext_number": external("w", [2], "short.bin", offset="abc"),
        "ext_length": external("w", [2], "short.bin", length=4),
        "ext_up": external("w", [2], "../short.bin"),
        "ext_abs": external("w", [2], "/etc/passwd"),
        "ext_none": T(name="w", data_type=F, dims=[2], data_location=T.EXTERNAL),
        "ext_link": external("w", [2], "link.bin"),
    }.items():
        save(name, model([relu], initializers=[tensor]))
    link = os.path.join(out, "link.bin")
    if not os.path.lexists(link):
        os.symlink("/etc/passwd", link)

    def calling(name, callee):
        return h.make_function("my", name, ["a"], ["b"], [h.make_node(callee, ["a"], ["b"], domain="my")],
                               [h.make_opsetid("", 17), h.make_opsetid("my", 1)])

    save("recursion", model([h.make_node("A", ["x"], ["y"], domain="my")], functions=[calling("A", "B"), calling("B", "A")],
                            domains={"my": 1}))
    save("function_twice", model([relu], functions=[calling("A", "B"), calling("A", "C")], domains={"my": 1}))
    # 2^60 calls: refused by nobody, but never expanded either.
    chain = []
    for i in range(60):
        nodes = [h.make_node(f"F{i + 1}", ["a"], ["t"], domain="my"), h.make_node(f"F{i + 1}", ["t"], ["b"], domain="my")]
        if i == 59:
            nodes = [node("Relu", ["a"], ["b"])]
        chain.append(h.make_function("my", f"F{i}", ["a"], ["b"], nodes, [h.make_opsetid("", 17), h.make_opsetid("my", 1)]))
    save("explosion", model([h.make_node("F0", ["x"], ["y"], domain="my")], functions=chain, domains={"my": 1}))


{"good": good, "bad": bad}[sys.argv[1]]()
