"""Write small torch.export archives by hand, as PyTorch 2.15 writes them: program.py FOLDER

NAME.pt2 and, where the case has them, NAME.inputs.npz and NAME.expected.npz. Needs no PyTorch.
SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import json
import sys
import zipfile

import numpy as np

DTYPES = {"f32": (7, np.float32), "f64": (8, np.float64), "i64": (5, np.int64), "bool": (12, np.bool_),
          "bf16": (13, None), "u16": (28, np.uint16), "u32": (34, np.uint32), "u64": (35, np.uint64)}
FOLDER = sys.argv[1]


def size(value):
    return {"as_int": value} if isinstance(value, int) else {"as_expr": {"expr_str": value, "hint": None}}


def meta(dtype, *sizes, layout=7):
    return {"dtype": DTYPES[dtype][0], "sizes": [size(s) for s in sizes], "requires_grad": False,
            "device": {"type": "cpu", "index": None}, "strides": [{"as_int": 1} for _ in sizes],
            "storage_offset": {"as_int": 0}, "layout": layout}


def sym(name, positive=True):
    return f"Symbol('{name}', {'positive=True, ' if positive else ''}integer=True)"


class Graph:
    """Values are named by %x (tensors) and $n (integers), $n! (bools), $n. (floats)."""

    def __init__(self):
        self.inputs, self.outputs, self.nodes = [], [], []
        self.values = {"tensor_values": {}, "sym_int_values": {}, "sym_float_values": {}, "sym_bool_values": {}}

    def declare(self, name, what):
        if name is None:
            return
        if name.startswith("%"):
            self.values["tensor_values"][name[1:]] = what
        else:
            kind = {"!": "bool", ".": "float"}.get(name[-1], "int")
            self.values[f"sym_{kind}_values"][name.strip("$!.")] = {"as_expr": {"expr_str": what or "0", "hint": None}}

    def argument(self, value):
        if isinstance(value, Graph):
            return {"as_graph": {"name": "graph", "graph": value.json()}}
        if isinstance(value, dict) or value is None:
            return value or {"as_none": True}
        if isinstance(value, bool):
            return {"as_bool": value}
        if isinstance(value, int):
            return {"as_int": value}
        if isinstance(value, float):
            return {"as_float": value}
        if isinstance(value, (list, tuple)):
            if all(isinstance(v, int) for v in value):
                return {"as_ints": list(value)}
            if any(isinstance(v, str) and v.startswith("$") for v in value):
                return {"as_sym_ints": [{"as_int": v} if isinstance(v, int) else {"as_name": v.strip("$")}
                                        for v in value]}
            return {"as_tensors": [{"name": v[1:]} for v in value]}
        if value.startswith("%"):
            return {"as_tensor": {"name": value[1:]}}
        if value.startswith("$"):
            kind = {"!": "bool", ".": "float"}.get(value[-1], "int")
            return {f"as_sym_{kind}": {"as_name": value.strip("$!.")}}
        return {"as_string": value}

    def input(self, name, what):
        self.declare(name, what)
        self.inputs.append(self.argument(name))

    def node(self, target, results, arguments, stack=""):
        """`results`: {name: meta or expression, None: one that there is not}; `arguments`: {name: value}, or a list without names."""
        named = arguments.items() if isinstance(arguments, dict) else [("", a) for a in arguments]
        for name, what in results.items():
            self.declare(name, what)
        if "." not in target or target.startswith("aten") or target.startswith("higher_order"):
            target = "torch.ops." + target
        self.nodes.append({"target": target, "name": next(iter(results), target.split(".")[-1]).strip("%$!."),
                           "inputs": [{"name": n, "arg": self.argument(a), "kind": 1} for n, a in named],
                           "outputs": [self.argument(r) for r in results],
                           "metadata": {"stack_trace": stack} if stack else {}})

    def json(self):
        return {"inputs": self.inputs, "outputs": self.outputs, "nodes": self.nodes, **self.values,
                "is_single_tensor_return": False, "custom_obj_values": {}}


class Program(Graph):
    def __init__(self):
        super().__init__()
        self.specs, self.results, self.constants = [], [], {}
        self.ranges, self.guards, self.call = {}, [], None

    def input(self, name, what):
        super().input(name, what)
        self.specs.append({"user_input": {"arg": self.argument(name)}})

    def hold(self, kind, value, name, array):
        dtype = next(d for d, (_, t) in DTYPES.items() if t == array.dtype)
        self.declare("%" + value, meta(dtype, *array.shape))
        self.inputs.append({"as_tensor": {"name": value}})
        self.specs.append({kind: {"arg": {"name": value}, kind + "_name": name}})
        self.constants[name] = (dtype, array)

    def output(self, value, kind="user_output", **more):
        argument = self.argument(value)
        self.outputs.append(argument)
        self.results.append({kind: {"arg": argument if kind == "user_output" else argument["as_tensor"], **more}})

    def write(self, name, inputs=None, expected=None):
        entries = {}
        for key, (dtype, array) in self.constants.items():
            m = meta(dtype, *array.shape)
            m["strides"] = [{"as_int": int(s // array.itemsize)} for s in array.strides]
            entries[key] = {"path_name": "weight_" + str(len(entries)), "is_param": True, "use_pickle": False,
                            "tensor_meta": m}
        call = [] if self.call is None else [{"fqn": "", "signature": {"inputs": [], "outputs": [], **self.call}}]
        program = {"graph_module": {"graph": self.json(), "signature": {"input_specs": self.specs,
                                                                        "output_specs": self.results},
                                    "module_call_graph": call, "metadata": {},
                                    "treespec_namedtuple_fields": {"my.Point": {"field_names": ["u", "v"]}}},
                   "opset_version": {"aten": 10}, "range_constraints": self.ranges, "verifiers": ["TRAINING"],
                   "schema_version": {"major": 8, "minor": 20}, "torch_version": "2.15.0", "guards_code": self.guards}
        members = {"archive_format": b"pt2", "archive_version": b"0", "byteorder": b"little", ".data/version": b"3\n",
                   "models/model.json": json.dumps(program).encode(),
                   "data/weights/model_weights_config.json": json.dumps({"config": entries}).encode()}
        for key, (_, array) in self.constants.items():
            members["data/weights/" + entries[key]["path_name"]] = array.tobytes()
        with zipfile.ZipFile(f"{FOLDER}/{name}.pt2", "w", zipfile.ZIP_STORED) as archive:
            for member, data in members.items():
                archive.writestr(f"{name}/{member}", data)
        for file, arrays in (("inputs", inputs), ("expected", expected)):
            if arrays:
                np.savez(f"{FOLDER}/{name}.{file}.npz", **arrays)


def leaf():
    return {"type": None, "context": None, "children_spec": []}


def tree(kind, context, *children):
    return {"type": kind, "context": context, "children_spec": list(children)}


def spec(root):
    return json.dumps([1, root])


def symbols():
    """One symbol in two inputs, a range, and one that a condition joins."""
    p = Program()
    p.input("%x", meta("f32", sym("s77"), sym("s27")))
    p.input("%y", meta("f32", sym("s77"), sym("s43")))
    p.ranges = {"s77": {"min_val": 3, "max_val": 10}, "s27": {"min_val": 2, "max_val": None},
                "s43": {"min_val": 2, "max_val": None}}
    p.guards = ["L['y'].size()[1] == L['x'].size()[1]", "L['x'].size()[1] <= 64",
                "(L['x'].size()[0]*L['x'].size()[1]) % 2 == 0", "(1 + (((-1) + L['x'].size()[1]) // 2)) != 1",
                "L['x'].size()[0] == 8 or not L['x'].size()[0] > 8"]
    p.node("aten.add.Tensor", {"%add": meta("f32", sym("s77"), sym("s27"))}, {"self": "%x", "other": "%y"})
    p.output("%add")
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    p.write("symbols", {"x": x, "y": x}, {"output_0": 2 * x})


def derived(y="Add({s}, Integer(1))", x="{s}", name="derived", rows=(8, 9)):
    """A size that follows from another one."""
    p = Program()
    s = sym("s77")
    p.input("%x", meta("f32", x.format(s=s)))
    p.input("%y", meta("f32", y.format(s=s, t=sym("s5"))))
    p.node("aten.mul.Tensor", {"%mul": meta("f32", x.format(s=s))}, {"self": "%x", "other": 2.0})
    p.output("%mul")
    x = np.arange(rows[0], dtype=np.float32)
    p.write(name, {"x": x, "y": np.zeros(rows[1], np.float32)}, {"output_0": 2 * x})


def given():
    """An integer that is an input, and a size as well."""
    p = Program()
    p.input("%x", meta("f32", sym("s77")))
    p.input("$n", sym("s5"))
    p.guards = ["L['x'].size()[0] == L['n']", "torch.sym_min(4, L['x'].size()[0]) <= L['x'].size()[0]", "min(4, L['x'].size()[0]) <= max(1, L['x'].size()[0])"]
    p.node("aten.mul.Tensor", {"%mul": meta("f32", sym("s77"))}, {"self": "%x", "other": "$n"})
    p.output("%mul")
    x = np.arange(5, dtype=np.float32)
    p.write("given", {"x": x, "n": np.int64(5)}, {"output_0": 5 * x})
    np.savez(f"{FOLDER}/given.other.npz", x=x, n=np.int64(4))


def types():
    """Element types whose numbers newer versions of PyTorch have."""
    p, values = Program(), {}
    for i, name in enumerate(("u16", "u32", "u64")):
        values[f"x{i}"] = np.array([0, 1, np.iinfo(DTYPES[name][1]).max], DTYPES[name][1])
        p.input(f"%x{i}", meta(name, 3))
        p.hold("buffer", f"b{i}", f"held.{i}", values[f"x{i}"][::-1].copy())
        p.node("aten.bitwise_xor.Tensor", {f"%y{i}": meta(name, 3)}, {"self": f"%x{i}", "other": f"%b{i}"})
        p.output(f"%y{i}")
    p.write("types", values, {f"output_{i}": x ^ x[::-1] for i, x in enumerate(values.values())})


def nested():
    """Nested, constant and keyword inputs; an output of each kind."""
    p = Program()
    p.input("%a", meta("f32", 2))
    p.input("%b_ids_0", meta("f32", 2))
    p.input("%b_ids_1", meta("f32", sym("s0")))
    p.specs.append({"constant_input": {"name": "flag", "value": {"as_bool": False}}})
    p.specs.append({"constant_input": {"name": "word", "value": {"as_string": "q"}}})
    p.input("$n", sym("s9", positive=False))
    p.input("%d_v", meta("f32", 2))
    p.node("aten.add.Tensor", {"%add": meta("f32", 2)}, {"self": "%a", "other": "%b_ids_0"})
    for value in ("%add", "%b_ids_1", None, 3, 2.5, True, "word", "$n", "%a", "%a"):
        p.output(value)
    arguments = tree("builtins.tuple", "null", leaf(), tree("builtins.dict", '["ids"]',
                                                            tree("builtins.list", "null", leaf(), leaf())))
    keywords = tree("builtins.dict", '["flag", "word", "n", "d"]', leaf(), leaf(), leaf(),
                    tree("collections.namedtuple", "my.Point", leaf()))
    keywords["children_spec"][3] = tree("builtins.dict", '["v"]', leaf())
    point = tree("collections.namedtuple", "my.Point", leaf(), leaf())
    p.call = {"in_spec": spec(tree("builtins.tuple", "null", arguments, keywords)),
              "out_spec": spec(tree("builtins.tuple", "null", tree("builtins.dict", '["logits", "p"]', leaf(), point),
                                    *[leaf() for _ in range(7)])),
              "forward_arg_names": ["a", "b", "flag", "word", "n", "d"]}
    one = np.ones(2, np.float32)
    p.write("nested", {"a": one, "b.ids.0": one, "b.ids.1": np.ones(3, np.float32), "n": np.int64(-7), "d.v": one},
            {"output_0.logits": 2 * one, "output_0.p.u": np.ones(3, np.float32), "output_2": np.int64(3),
             "output_3": np.float64(2.5), "output_4": np.bool_(True), "output_5": np.int64(-7), "output_6": one,
             "output_7": one})


def states():
    """A buffer and an input that the program updates, and a buffer that it only reads."""
    p = Program()
    p.hold("buffer", "b_calls", "calls", np.array([0.0, 10.0], np.float32))
    p.hold("buffer", "b_scale", "scale", np.array([2.0, 2.0], np.float32))
    p.input("%x", meta("f32", 2))
    p.node("aten.add.Tensor", {"%add": meta("f32", 2)}, {"self": "%b_calls", "other": 1})
    p.node("aten.mul.Tensor", {"%mul": meta("f32", 2)}, {"self": "%x", "other": "%b_scale"})
    p.node("aten.add.Tensor", {"%sum": meta("f32", 2)}, {"self": "%mul", "other": "%b_calls"})
    p.output("%add", "buffer_mutation", buffer_name="calls")
    p.output("%mul", "user_input_mutation", user_input_name="x")
    p.output("%sum")
    x = np.ones(2, np.float32)
    # Of the third run, which finds what two have left.
    p.write("states", {"x": x}, {"output_0": 2 * x + np.array([2, 12], np.float32), "x.updated": 2 * x})


def numbers():
    """Arithmetic on a size, as Python does it, and on data."""
    p = Program()
    s = sym("s77")
    p.input("%x", meta("i64", s))
    p.node("aten.sym_size.int", {"$n": s}, {"self": "%x", "dim": 0})
    results = {}

    def number(name, target, a, b=None, value=None):
        p.node(target, {name: None}, {"a": a} if b is None else {"a": a, "b": b})
        p.output(name)
        results["output_" + str(len(results))] = value
    number("$less", "_operator.sub", "$n", 9, np.int64(-2))
    number("$div", "_operator.floordiv", "$less", 4, np.int64(-1))
    number("$mod", "_operator.mod", "$less", 5, np.int64(3))
    number("$half.", "_operator.truediv", "$n", 2, np.float64(3.5))
    number("$cut", "torch.sym_int", "$half.", None, np.int64(3))
    number("$up", "math.ceil", "$half.", None, np.int64(4))
    number("$max", "torch.sym_max", "$n", 30, np.int64(30))
    number("$square", "_operator.pow", "$n", 2, np.int64(49))
    number("$big!", "_operator.gt", "$n", 6, np.bool_(True))
    number("$not!", "torch.sym_not", "$big!", None, np.bool_(False))
    p.node("aten.amax.default", {"%top": meta("i64")}, {"self": "%x"})
    p.node("aten.item.default", {"$item": sym("u0", positive=False)}, {"self": "%top"})
    number("$neg", "_operator.neg", "$item", None, np.int64(6))
    number("$divd", "_operator.floordiv", "$item", 4, np.int64(-2))
    number("$modd", "_operator.mod", "$item", 4, np.int64(2))
    number("$modn", "_operator.mod", "$item", -4, np.int64(-2))
    p.node("torch.sym_ite", {"$ite": None}, {"b": "$big!", "t": "$item", "f": 1})
    p.output("$ite")
    results["output_" + str(len(results))] = np.int64(-6)
    p.write("numbers", {"x": np.arange(-12, -5, dtype=np.int64)}, results)


def guards():
    """Assertions of sizes and of data."""
    p = Program()
    p.input("%x", meta("i64", sym("s77")))
    p.node("aten.sym_size.int", {"$n": sym("s77")}, {"self": "%x", "dim": 0})
    p.node("_operator.le", {"$few!": None}, {"a": "$n", "b": 4})
    p.node("aten._assert_scalar.default", {}, {"self": "$few!", "assert_msg": "too many rows"})
    p.node("aten.amax.default", {"%top": meta("i64")}, {"self": "%x"})
    p.node("aten.item.default", {"$item": sym("u0", positive=False)}, {"self": "%top"})
    p.node("aten.sym_constrain_range_for_size.default", {}, {"size": "$item", "max": 5})
    p.node("_operator.ne", {"$other!": None}, {"a": "$item", "b": 3})
    p.node("aten._assert_scalar.default", {}, {"self": "$other!", "assert_msg": "three is not taken"})
    p.node("aten.mul.Tensor", {"%mul": meta("i64", sym("s77"))}, {"self": "%x", "other": "$item"})
    p.output("%mul")
    p.write("guards", {"x": np.array([1, 2], np.int64)}, {"output_0": np.array([2, 4], np.int64)})
    for name, value in (("many", [1] * 5), ("three", [3]), ("six", [6]), ("negative", [-1])):
        np.savez(f"{FOLDER}/guards.{name}.npz", x=np.array(value, np.int64))


def graph(inputs, nodes, outputs):
    g = Graph()
    for name, what in inputs:
        g.input(name, what)
    for node in nodes:
        g.node(*node)
    g.outputs = [g.argument(o) for o in outputs]
    return g


def control():
    """cond of data and of a size, while_loop, scan and map."""
    p = Program()
    row = meta("f32", 3)
    x = meta("f32", sym("s77"), 3)
    p.input("%x", x)
    p.input("%v", row)
    p.node("aten.sum.default", {"%total": meta("f32")}, {"self": "%x"})
    p.node("aten.item.default", {"$sum.": None}, {"self": "%total"})
    p.node("_operator.gt", {"$positive!": None}, {"a": "$sum.", "b": 0})
    yes = graph([("%a", x), ("%b", row)], [("aten.add.Tensor", {"%r": x}, {"self": "%a", "other": "%b"})], ["%r"])
    no = graph([("%a", x), ("%b", row)], [("aten.sub.Tensor", {"%r": x}, {"self": "%a", "other": "%b"})], ["%r"])
    p.node("higher_order.cond", {"%c": x}, ["$positive!", yes, no, ["%x", "%v"]])
    p.node("aten.sym_size.int", {"$n": sym("s77")}, {"self": "%x", "dim": 0})
    p.node("_operator.gt", {"$many!": None}, {"a": "$n", "b": 3})
    p.node("higher_order.cond", {"%d": x}, ["$many!", yes, no, ["%x", "%v"]])
    number = meta("i64")
    test = graph([("%i", number), ("%a", row)], [
        ("aten.item.default", {"$k": None}, {"self": "%i"}),
        ("_operator.lt", {"$r!": None}, {"a": "$k", "b": 5}),
    ], ["$r!"])
    body = graph([("%i", number), ("%a", row)], [
        ("aten.add.Tensor", {"%j": number}, {"self": "%i", "other": 2}),
        ("aten.mul.Tensor", {"%r": row}, {"self": "%a", "other": 2}),
    ], ["%j", "%r"])
    p.hold("tensor_constant", "c_zero", "zero", np.array(0, np.int64))
    p.node("higher_order.while_loop", {"%w0": number, "%w1": row}, [test, body, ["%c_zero", "%v"], {"as_tensors": []}])
    step = graph([("%s", row), ("%a", row), ("%k", row)], [
        ("aten.add.Tensor", {"%t": row}, {"self": "%s", "other": "%a"}),
        ("aten.mul.Tensor", {"%r": row}, {"self": "%t", "other": "%k"}),
    ], ["%t", "%r"])
    p.node("higher_order.scan", {"%s0": row, "%s1": x}, [step, ["%v"], ["%x"], ["%v"]])
    each = graph([("%a", row), ("%k", row)], [("aten.mul.Tensor", {"%r": row}, {"self": "%a", "other": "%k"})], ["%r"])
    p.node("higher_order.map_impl", {"%m": x}, [each, ["%x"], ["%v"]])
    for value in ("%c", "%d", "%w0", "%w1", "%s0", "%s1", "%m"):
        p.output(value)
    a, v = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([1, 2, 3], np.float32)
    sums = v + np.cumsum(a, axis=0)
    p.write("control", {"x": a, "v": v}, {"output_0": a + v, "output_1": a - v, "output_2": np.int64(6),
                                          "output_3": 8 * v, "output_4": sums[-1], "output_5": sums * v,
                                          "output_6": a * v})


def regions():
    """Regions that only set a mode: their nodes stand in their place, with autocast's conversions."""
    p = Program()
    f32, bf16 = meta("f32", 3, 3), meta("bf16", 3, 3)
    p.input("%x", f32)
    inner = graph([("%a", f32)], [("aten.mul.Tensor", {"%r": f32}, {"self": "%a", "other": 2})], ["%r"])
    p.node("higher_order.wrap_with_set_grad_enabled", {"%y": f32}, [False, inner, "%x"])
    inner = graph([("%a", f32)], [("aten.mm.default", {"%r": bf16}, {"self": "%a", "mat2": "%a"}),
                                  ("aten.sum.default", {"%t": meta("f32")}, {"self": "%r"})], ["%r", "%t"])
    p.node("higher_order.wrap_with_autocast", {"%z": bf16, "%t": meta("f32")},
           ["cpu", {"as_scalar_type": 13}, True, False, inner, "%y"])
    p.node("aten.to.dtype", {"%w": f32}, {"self": "%z", "dtype": {"as_scalar_type": 7}})
    p.output("%w")
    p.output("%t")
    x = np.arange(9, dtype=np.float32).reshape(3, 3)
    p.write("regions", {"x": x}, {"output_0": 4 * x @ x, "output_1": (4 * x @ x).sum()})


def absent():
    """A result of None between two others."""
    p = Program()
    for name, sizes in (("%g", (4, 3)), ("%x", (4, 3)), ("%m", (4, 1)), ("%r", (4, 1))):
        p.input(name, meta("f32", *sizes))
    p.node("aten.native_layer_norm_backward.default", {"%gx": meta("f32", 4, 3), None: None, "%gb": meta("f32", 3)},
           {"grad_out": "%g", "input": "%x", "normalized_shape": [3], "mean": "%m", "rstd": "%r",
            "output_mask": {"as_bools": [True, False, True]}})
    p.output("%gx")
    p.output("%gb")
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    m, r = x.mean(1, keepdims=True), np.full((4, 1), 0.5, np.float32)
    g = x * x / 8
    n = (x - m) * r
    gx = r * (g - g.mean(1, keepdims=True) - n * (g * n).mean(1, keepdims=True))
    p.write("absent", {"g": g, "x": x, "m": m, "r": r}, {"output_0": gx, "output_1": g.sum(0)})


def refused():
    """Programs that cannot be compiled, one archive each."""
    row = meta("f32", 3)

    def one(name, change):
        p = Program()
        p.input("%x", row)
        p.node("aten.relu.default", {"%r": row}, {"self": "%x"})
        change(p)
        if not p.results:
            p.output("%r")
        p.write(name)
    inner = graph([("%a", row)], [("aten.relu.default", {"%b": row}, {"self": "%a"})], ["%b"])
    one("rng", lambda p: (p.node("higher_order.run_with_rng_state", {"%q": row}, ["%x", inner, "%x"],
                                 '  File "net.py", line 7, in forward\n    y = f(x)\n'), p.output("%q")))
    one("object", lambda p: p.specs.append({"custom_obj": {"arg": {"name": "o", "class_fqn": "C"},
                                                           "custom_obj_name": "tokenizer"}}))
    one("sparse", lambda p: p.input("%y", meta("f32", 3, layout=1)))
    one("gradient", lambda p: p.output("%r", "gradient_to_parameter", parameter_name="w"))
    one("unknown", lambda p: p.output("%r", "buffer_mutation", buffer_name="absent"))
    one("argument", lambda p: p.node("aten.relu.default", {"%q": row},
                                     {"self": {"as_custom_obj": {"name": "o", "class_fqn": "my.Class"}}}))
    one("never", lambda p: (p.node("_operator.gt", {"$no!": None}, {"a": 1, "b": 2}),
                            p.node("aten._assert_scalar.default", {}, {"self": "$no!", "assert_msg": "one above two"})))


if __name__ == "__main__":
    for case in (symbols, derived, given, types, nested, states, numbers, guards, control, regions, absent, refused):
        case()
    derived("{s}*3 + 1", name="plain", rows=(8, 25))
    derived("{s} + 1", "8*{s}", name="multiple", rows=(16, 3))
    derived("Mul({s}, {t})", name="free")
    derived("Max(Integer(3), {s})", name="max")
