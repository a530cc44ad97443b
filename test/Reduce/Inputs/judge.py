"""judge.py PATTERN MODULE: 0 where a module of phase import shows a pattern of nodes. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"""
import re
import sys

NODE = re.compile(r'^\s*(?:(%\w+)(?::\d+)? = )?graph\.node "[^"]*":"([^"]*)" opset \d+(?: overload "[^"]*")?(?: calls @[\w."]+)?\(([^)]*)\)(.*)$')
CONSTANT = re.compile(r"^\s*(%\w+) = graph\.constant ")


def read(path):
    """[(operator, result, operands, the rest of the line)]"""
    nodes = []
    with open(path, encoding="utf-8") as f:
        for line in f:
            if match := NODE.match(line):
                result, operator, operands, rest = match.groups()
                nodes.append((operator, result, [name.split("#")[0] for name in operands.split(", ") if name], rest))
            elif match := CONSTANT.match(line):
                nodes.append(("constant", match.group(1), [], ""))
    return nodes


def follows(nodes, first, second):
    """Whether a node `second` reads what a node `first` computes."""
    results = {result for operator, result, _, _ in nodes if operator == first}
    return any(operator == second and results & set(operands) for operator, _, operands, _ in nodes)


PATTERNS = {
    "softmax-of-product": lambda nodes: follows(nodes, "MatMul", "Softmax"),
    "product-of-transpose-of-softmax": lambda nodes: follows(nodes, "Softmax", "Transpose") and follows(nodes, "Transpose", "MatMul"),
    "transpose-read-twice": lambda nodes: any(
        operator == "Transpose" and sum(result in operands for _, _, operands, _ in nodes) > 1 for operator, result, _, _ in nodes
    ),
    "strided-convolution": lambda nodes: any(operator == "Conv" and "strides = array<i64: 2, 2>" in rest for operator, _, _, rest in nodes),
    "joined": lambda nodes: follows(nodes, "Relu", "Concat") and follows(nodes, "Sigmoid", "Concat"),
    "exp-in-loop": lambda nodes: any(operator == "Exp" for operator, *_ in nodes),
    "tanh-of-tanh": lambda nodes: follows(nodes, "Tanh", "Tanh"),
    "product-of-weights-of-gelu": lambda nodes: follows(nodes, "constant", "MatMul") and follows(nodes, "Gelu", "MatMul"),
    "pool-of-relu": lambda nodes: follows(nodes, "relu.default", "max_pool2d.default"),
}

if __name__ == "__main__":
    sys.exit(not PATTERNS[sys.argv[1]](read(sys.argv[2])))
