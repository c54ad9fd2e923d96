"""Draws programs that policies could be: sensible and senseless, whole and broken numbers mixed."""

from __future__ import annotations

from random import Random

POD = ("cpu_milli", "memory_mib", "gpu_count", "gpu_milli", "gpu_models", "priority", "gang")
NODE = (
    "cpu_milli_left", "cpu_milli_total", "memory_mib_left", "memory_mib_total", "gpu_count",
    "gpu_model", "rack", "gpu_classes",
)  # fmt: skip
NUMBERS = (
    "0", "1", "2", "3", "7", "8", "15", "63", "1000", "2147483647", "9007199254740992", "0.0",
    "-0.0", "0.5", "1.5", "2.5", "1e-320", "1e300", "1.7976931348623157e308", "0.1", "1e19",
    "True", "False", "4503599627370496", "94906267", "-1", "-8", "-9",
)  # fmt: skip
UNARY_MATH = (
    "atan", "ceil", "cos", "cosh", "erf", "exp", "expm1", "fabs", "floor", "isfinite", "isnan",
    "log", "log10", "log1p", "log2", "sin", "sinh", "sqrt", "tan", "tanh",
)  # fmt: skip
BINARY_MATH = ("atan2", "copysign", "hypot", "pow")
OPERATORS = ("+", "-", "*", "*", "+", "/", "//", "%", "&", "|", "^", ">>", "<<", "**")
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


class Drawer:
    """Draws the text of one program."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.names: list[str] = []
        self.helpers: list[tuple[str, list[str]]] = []
        self.takes_gpu = random.random() < 0.3
        self.depth = random.choice((1, 2, 2, 3, 4))
        self.counters = 0

    def program(self) -> str:
        """Draws constants, helpers and a score function."""
        lines = ["import math", ""]
        constants = []
        for index in range(self.random.randrange(3)):
            value = self.pick(NUMBERS)
            if self.chance(0.3):
                value = "(" + ", ".join(self.pick(NUMBERS) for _ in range(3)) + ")"
            lines.append(f"C{index} = {value}")
            constants.append(f"C{index}")
        for index in range(self.random.choice((0, 0, 0, 1, 1, 2))):
            lines += ["", *self.helper(f"h{index}", constants)]
        arguments = ["pod", "node", *(["gpu"] if self.takes_gpu else [])]
        self.names = [*constants, *(["gpu"] if self.takes_gpu else [])]
        lines += ["", f"def score({', '.join(arguments)}):", *self.body(1)]
        return "\n".join(lines) + "\n"

    def helper(self, name: str, constants: list[str]) -> list[str]:
        """Draws a function that the others may call."""
        takes = ["a", "b"][: self.random.randrange(1, 3)]
        records = self.random.choice(([], ["node"], ["pod", "node"]))
        self.names, kept = [*constants, *takes], self.takes_gpu
        self.takes_gpu, self.has_records = False, records
        found = [f"def {name}({', '.join([*records, *takes])}):", *self.body(1)]
        self.takes_gpu, self.has_records = kept, ["pod", "node"]
        self.helpers.append((name, [*records, *takes]))
        return found

    has_records: list[str] = ["pod", "node"]  # noqa: RUF012 - replaced, never changed

    def body(self, level: int) -> list[str]:
        """Draws statements that end with a result, most of the time."""
        lines: list[str] = []
        for _ in range(self.random.randrange(4)):
            lines += self.statement(level)
        if not self.chance(0.03):
            lines.append("    " * level + f"return {self.value(self.depth)}")
        return lines or ["    " * level + "return 1"]

    def statement(self, level: int) -> list[str]:
        """Draws a statement."""
        pad, roll = "    " * level, self.random.random()
        if roll < 0.45 or level > 3:
            return [pad + self.assignment()]
        if roll < 0.55:
            operator = self.pick(("+", "-", "*", "/", "//", "%", "|"))
            return [f"{pad}{self.name()} {operator}= {self.value(1)}"]
        if roll < 0.7:
            return self.branch(level)
        if roll < 0.8:
            return self.loop(level)
        if roll < 0.86:
            return self.counted(level)
        if roll < 0.93:
            one, other = self.pick("uvwxyz"), self.pick("uvwxyz")
            line = f"{pad}{one}, {other} = {self.value(1)}, {self.value(1)}"
            self.names += [one, other]
            return [line]
        return [pad + self.oddity()]

    def assignment(self) -> str:
        name = self.pick("uvwxyz")
        line = f"{name} = {self.value(self.depth)}"
        self.names.append(name)
        return line

    def oddity(self) -> str:
        """Draws what a policy may not do, or hardly does."""
        return self.pick(
            (
                "x = node", "x = node.gpu_milli_left", "node.cpu_milli_left = 1", "x = pod",
                "node.gpu_milli_left[0] = 5", "score = 3", "h0 = h1", "math = 3", "x = score",
                "x = node.gpu_milli_left; x += 1", "x = h0", "x = node[8]", "x = (pod, node)",
                "x = (1, (2, 3))[pod.gpu_count]", "x = node.gpu_milli_left[:]", "x = [1, 2]",
                "node = pod", "pod.cpu_milli += 1", "x = node.gpu_milli_left[-1]", "x = C0[-1]",
                "x = (1, 2.5)[0]", "x = min(node.gpu_milli_left)", "x = range", "min = max",
            )
        )  # fmt: skip

    def branch(self, level: int) -> list[str]:
        pad = "    " * level
        found = [f"{pad}if {self.truth(1)}:", *self.statement(level + 1)]
        if self.chance(0.3):
            found[-1:] = [found[-1], f"{pad}    return {self.value(1)}"]
        if self.chance(0.5):
            found += [f"{pad}else:", *self.statement(level + 1)]
        return found

    def loop(self, level: int) -> list[str]:
        pad, name = "    " * level, self.pick("uvwijk")
        over = self.pick(
            ("range(node.gpu_count)", "range(8)", "range(len(node.gpu_milli_left))",
             "range(3, -2, -1)", "node.gpu_milli_left", "range(20)",
             "range(pod.gpu_count)", "range(1, 9)")
        )  # fmt: skip
        if ("node" not in self.has_records and "node" in over) or "pod" not in self.has_records:
            over = "range(6)"
        self.names.append(name)
        found = [f"{pad}for {name} in {over}:", *self.statement(level + 1)]
        if self.chance(0.5):
            found.append(f"{pad}    {self.name()} {self.pick(('+', '-', '*'))}= {self.value(1)}")
        if self.chance(0.2):
            found.append(f"{pad}    if {self.truth(1)}: {self.pick(('break', 'continue'))}")
        return found

    def counted(self, level: int) -> list[str]:
        pad, name = "    " * level, f"n{self.counters}"
        self.counters += 1
        most = self.pick(("3", "12", "40"))
        found = [f"{pad}{name} = 0", f"{pad}while {name} < {most}:", f"{pad}    {name} += 1"]
        # Nothing else may set the counter: the loop would never end.
        return found + self.statement(level + 1)

    def truth(self, depth: int) -> str:
        if depth <= 0 or self.chance(0.6):
            chain = f" {self.pick(COMPARISONS)} {self.value(0)}" if self.chance(0.2) else ""
            return f"{self.value(depth)} {self.pick(COMPARISONS)} {self.value(0)}{chain}"
        return f"({self.truth(depth - 1)} {self.pick(('and', 'or'))} {self.truth(depth - 1)})"

    def value(self, depth: int) -> str:
        """Draws an expression."""
        if depth <= 0 or self.chance(0.15):
            return self.leaf()
        roll = self.random.random()
        if roll < 0.4:
            return f"({self.value(depth - 1)} {self.pick(OPERATORS)} {self.value(depth - 1)})"
        if roll < 0.48:
            return f"({self.pick(('-', '+', '~', 'not ', '-', '-'))}{self.value(depth - 1)})"
        if roll < 0.6:
            return self.call(depth)
        if roll < 0.68:
            return f"({self.value(depth - 1)} if {self.truth(1)} else {self.value(depth - 1)})"
        if roll < 0.74:
            return f"({self.value(depth - 1)} {self.pick(('and', 'or'))} {self.value(depth - 1)})"
        if roll < 0.8:
            return f"({self.truth(1)})"
        if roll < 0.9 and "node" in self.has_records:
            return f"node.gpu_milli_left[{self.index(depth)}]"
        if roll < 0.95:
            return f"({self.value(0)}, {self.value(0)}, {self.value(0)})[{self.index(depth)}]"
        return self.own_call(depth)

    def index(self, depth: int) -> str:
        return self.pick((
            self.value(depth - 1), "pod.gpu_count" if "pod" in self.has_records else "1",
            str(self.random.randrange(-10, 20)), self.name() if self.names else "0",
        ))  # fmt: skip

    def call(self, depth: int) -> str:
        roll, inner = self.random.random(), self.value(depth - 1)
        if roll < 0.3:
            return f"math.{self.pick(UNARY_MATH)}({inner})"
        if roll < 0.4:
            return f"math.{self.pick(BINARY_MATH)}({inner}, {self.value(depth - 1)})"
        if roll < 0.6:
            return f"{self.pick(('min', 'max'))}({inner}, {self.value(depth - 1)})"
        if roll < 0.65 and "node" in self.has_records:
            return f"{self.pick(('min', 'max', 'sum', 'len'))}(node.gpu_milli_left)"
        if roll < 0.7:
            return f"round({inner}, {self.pick(('0', '1', '3'))})"
        if roll < 0.75:
            return f"sum(({inner}, {self.value(0)}, {self.value(0)}))"
        return f"{self.pick(('abs', 'bool', 'float', 'int', 'round', 'int', 'int'))}({inner})"

    def own_call(self, depth: int) -> str:
        able = [h for h in self.helpers if set(h[1]) - {"a", "b"} <= set(self.has_records)]
        if not able:
            return self.leaf()
        name, takes = self.pick(able)
        given = [each if each in ("pod", "node") else self.value(depth - 1) for each in takes]
        return f"{name}({', '.join(given)})"

    def leaf(self) -> str:
        roll = self.random.random()
        if roll < 0.35 and "node" in self.has_records:
            return f"node.{self.pick(NODE)}"
        if roll < 0.55 and "pod" in self.has_records:
            return f"pod.{self.pick(POD)}"
        if roll < 0.75 and self.names:
            return self.name()
        return self.pick(NUMBERS)

    def name(self) -> str:
        # Now and then a name that may not be set yet.
        return self.pick("uvwxyz") if not self.names or self.chance(0.05) else self.pick(self.names)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def pick(self, among):
        return self.random.choice(among)


def draw_program(seed: int) -> str:
    """Draws the program of a seed."""
    return Drawer(Random(seed)).program()


class Wide(Drawer):
    """Draws what else the gates of candidates admit: tuples by name, elif, annotations, HOLD."""

    def program(self) -> str:
        self.tuples: dict[str, int] = {}
        self.pairs: list[str] = []
        head = "import math\n\nfrom podium.policies import HOLD, tunable\n\n"
        head += self.pick(
            (
                "",
                "A, B = 3, 0.5\n",
                "A = B = 7\n",
                "A = B = W = -2.5\n",
                "A, B = (2 ** 3, 7 // -2), True\n",
            )
        )
        head += self.pick(("", "W = tunable(3, 0, 9)\n", "W = 1_000\n", "W = 0x1F & 12 ^ 3\n"))
        if self.chance(0.5):
            given, kept, self.has_records = ["a", "b"], self.takes_gpu, []
            self.names, self.takes_gpu = [*given], False
            lines = ["    x = a", *self.statement(1)]
            head += "\n".join(["", "def p0(a: int, b: float):", '    """Gives two."""', *lines])
            head += f"\n    return {self.value(1)}, {self.value(1)}\n"
            self.pairs, self.takes_gpu, self.tuples = ["p0"], kept, {}
            self.has_records = ["pod", "node"]
        text = super().program().replace("import math\n", head, 1)
        arguments = "pod, node, gpu" if self.takes_gpu else "pod, node"
        return text.replace(f"({arguments}):", f"({arguments}) -> float:")

    def helper(self, name: str, constants: list[str]) -> list[str]:
        self.tuples = {}
        found = super().helper(name, constants)
        self.tuples = {}
        return found

    def statement(self, level: int) -> list[str]:
        if level > 3 or self.chance(0.5):
            return super().statement(level)
        pad, one, other = "    " * level, self.pick("uvwxyz"), self.pick("uvwxyz")
        forms = [self.told_kind, self.held_tuple, self.chain, self.endless, self.changed]
        if self.tuples and self.chance(0.4):
            name = self.pick([*self.tuples])
            targets = self.random.sample("uvwxyz", self.tuples[name])
            self.names += targets
            return [f"{pad}{', '.join(targets)} = {name}"]
        if self.pairs and self.chance(0.3):
            self.names += [one, other]
            return [f"{pad}{one}, {other} = p0({self.value(1)}, {self.value(1)})"]
        return [pad + line for line in self.pick(forms)(level)]

    def told_kind(self, _level: int) -> list[str]:
        one, other = self.pick("uvwxyz"), self.pick("uvwxyz")
        line = self.pick((
            f"{one}: {self.pick(('int', 'float', 'bool'))} = {self.value(1)}",
            f"{one} = {other} = {self.value(1)}",
            f"{one}, {other} = {self.name()}, {self.name()}", "pass",
        ))  # fmt: skip
        self.names += [one, other] if "=" in line else []
        return [line]

    def held_tuple(self, _level: int) -> list[str]:
        name, size = self.pick(("s", "t")), self.random.randrange(1, 5)
        parts = [self.pick((self.value(1), self.value(0))) for _ in range(size)]
        if self.chance(0.1):
            parts[0] = f"({parts[0]}, {self.value(0)})"
        self.tuples[name] = size
        return [f"{name} = ({', '.join(parts)},)"]

    def chain(self, level: int) -> list[str]:
        kept, found = dict(self.tuples), []
        for word in ("if", *["elif"] * self.random.randrange(1, 4)):
            found += [f"{word} {self.truth(1)}:", *self._inner(level)]
            if self.chance(0.3):
                found.append(f"    return {self.pick(('HOLD', '-math.inf', self.value(1)))}")
        self.tuples = kept
        return [*found, *(["else:", *self._inner(level)] if self.chance(0.5) else [])]

    def endless(self, level: int) -> list[str]:
        name = f"n{self.counters}"
        self.counters += 1
        step = self.pick(("1", "2", "0.5"))
        test = self.pick((f"{name} < 9", f"0 <= {name} <= 5", f"{name} < 7 and {self.truth(0)}"))
        found = [f"{name} = 0", f"while {test}:", f"    {name} += {step}", *self._inner(level)]
        return [*found, f"    if {self.truth(1)}: {self.pick(('break', 'continue'))}"]

    def changed(self, level: int) -> list[str]:
        if self.chance(0.5):
            operator = self.pick(("**", ">>", "&", "^", "|", "//", "%"))
            return [f"{self.name()} {operator}= {self.pick((self.value(0), '2', '3'))}"]
        ends = [self.pick((self.value(0), "4", "-3", "9")) for _ in range(self.pick((1, 2, 3)))]
        ends[0] = f"{ends[0]} % 9"
        ends[1:2] = [f"({ends[1]}) % 9"] if len(ends) > 1 else []
        name = self.pick("uvwi")
        self.names.append(name)
        return [f"for {name} in range({', '.join(ends)}):", *self._inner(level)]

    def leaf(self) -> str:
        return self.pick(("A", "B", "W")) if self.chance(0.1) else super().leaf()

    def _inner(self, level: int) -> list[str]:
        return [line[4 * level :] for line in self.statement(level + 1)]

    def value(self, depth: int) -> str:
        if depth <= 0 or self.chance(0.7):
            return super().value(depth)
        one, other = self.value(depth - 1), self.value(depth - 1)
        forms = [
            f"pow({one}, {self.pick(('2', '3', '0.5', other))})",
            f"{self.pick(('min', 'max'))}({one}, {other}, {self.value(0)})",
            f"math.{self.pick(('pi', 'e', 'tau', 'inf'))}",
            f"(not {one})", f"({one} == {other}) + ({one} < {other} <= {self.value(0)})",
            f"({one} if {other} else {self.pick(('0', '1', '0.5'))})",
        ]  # fmt: skip
        if self.tuples:
            name = self.pick([*self.tuples])
            at = self.pick((str(self.random.randrange(-3, 4)), self.value(depth - 1)))
            read = f"{self.pick(('min', 'max', 'sum', 'len'))}({name})"
            forms += [f"{name}[{at}]", f"{name}[0]", read, f"sum({name}, {one})"]
        return self.pick(forms)


def draw_wide(seed: int) -> str:
    """Draws the wide program of a seed."""
    return Wide(Random(seed)).program()


class Sober(Drawer):
    """Draws programs as models and people write them: most of them can be bred."""

    bound = ("1", "2", "3", "0.5", "1000", "7", "1e-3", "-1", "250.0", "W", "0.1", "V")

    def program(self) -> str:
        self.takes_gpu, self.depth = self.chance(0.3), self.pick((1, 2, 2, 3))
        lines = ["import math", "", "from podium.policies import tunable", ""]
        lines += [f"W = tunable({self.pick(('0.5', '2.0', '1.7', '0', '-3'))}, -4.0, 9.0)"]
        lines += [f"V = {self.pick(('3', '0.25', '2 ** 3', '1.1 ** 3', '7 // 2'))}"]
        for index in range(self.random.choice((0, 0, 1, 1, 2))):
            lines += ["", *self.helper(f"h{index}", ["W", "V"])]
        arguments = ["pod", "node", *(["gpu"] if self.takes_gpu else [])]
        self.names, self.has_records = ["W", "V"], ["pod", "node"]
        lines += ["", f"def score({', '.join(arguments)}):", *self.body(1)]
        return "\n".join(lines) + "\n"

    def body(self, level: int) -> list[str]:
        pad, lines = "    " * level, []
        for _ in range(self.random.randrange(1, 6)):
            lines += self.statement(level)
        return [*lines, f"{pad}return {self.value(self.depth)}"]

    def statement(self, level: int) -> list[str]:
        pad, roll = "    " * level, self.random.random()
        if roll < 0.4 or level > 3:
            return [pad + self.assignment()]
        if roll < 0.5:
            return [f"{pad}{self.name()} {self.pick('+-*')}= {self.value(1)}"]
        if roll < 0.7:
            return self.branch(level)
        if roll < 0.9:
            return self.loop(level)
        one, other = self.pick("uvwW"), self.pick("xyz")
        joined = self.pick((f"{one} = {other} = {{}}", f"{one}, {other} = {{}}, {self.value(1)}"))
        line = pad + joined.format(self.value(1))
        self.names += [one, other]
        return [line]

    def assignment(self) -> str:
        name = self.pick("uvwxyzuvwxyzW") if not self.takes_gpu else self.pick("uvwxyz")
        drawn = self.truth(1) if self.chance(0.2) else self.value(self.depth)
        self.names.append(name)
        return f"{name} = {drawn}"

    def branch(self, level: int) -> list[str]:
        pad = "    " * level
        found = [f"{pad}if {self.truth(1)}:"]
        for _ in range(self.random.randrange(1, 3)):
            found += self.statement(level + 1)
        if self.chance(0.3):
            found.append(f"{pad}    return {self.value(1)}")
        if self.chance(0.5):
            found += [f"{pad}else:", *self.statement(level + 1)]
        return found

    def loop(self, level: int) -> list[str]:
        if "node" not in self.has_records:
            return [f"{'    ' * level}{self.assignment()}"]
        pad, name, kept = "    " * level, self.pick(("slot", "left", "i", "u", "gpu")), self.names
        over = self.pick(("range(node.gpu_count)", "range(8)", "node.gpu_milli_left",
                          "range(node.gpu_count)", "range(len(node.gpu_milli_left))"))  # fmt: skip
        total = self.pick("uvwxyz")
        found = [f"{pad}{total} = {self.pick(('0', '0', '0.1', '1000', self.value(1)))}"]
        self.names = [*kept, name]
        found.append(f"{pad}for {name} in {over}:")
        here = f"node.gpu_milli_left[{name}]" if "range" in over else name
        if self.chance(0.4):
            local = self.pick("abxyz")
            found.append(f"{pad}    {local} = {self.pick((here, f'{here} / 3', self.value(1)))}")
            self.names.append(local)
            if self.chance(0.3):
                found.append(f"{pad}    if {here} > 500: {local} = {self.value(0)}")
        for _ in range(self.random.choice((1, 1, 1, 2))):
            found += self.update(f"{pad}    ", total, here)
        self.names = [*kept, total, *([name] if self.chance(0.1) else [])]
        return found

    def update(self, pad: str, total: str, here: str) -> list[str]:
        value = self.pick((here, here, "1", f"{here} / 7", self.value(1)))
        adding = f"{total} {self.pick(('+', '+', '-'))}= {value}"
        test = self.pick((f"{here} > {self.value(0)}", self.truth(1)))
        return self.pick((
            [pad + adding], [f"{pad}if {test}:", f"{pad}    {adding}"],
            [f"{pad}if {test}: continue", pad + adding],
            [f"{pad}if {test}:", f"{pad}    {adding}", f"{pad}else: {total} += {here}"],
            [f"{pad}{total} = {self.pick(('min', 'max'))}({total}, {value})"],
            [f"{pad}if {value} < {total}: {total} = {value}"],
        ))  # fmt: skip

    def value(self, depth: int) -> str:
        if depth <= 0 or self.chance(0.2):
            return self.leaf()
        one, other = self.value(depth - 1), self.value(depth - 1)
        asked = self.truth(depth - 1)
        forms = {
            f"({one} {self.pick('+-*+-*')} {other})": 45,
            f"({one} {self.pick(('/', '//', '%'))} {self.pick(('7', '1000', '0.3', '-3'))})": 10,
            f"({one} / max(1, abs({other})))": 7,
            f"{self.pick(('abs', 'int', 'float', 'math.floor', 'math.tanh'))}({one})": 8,
            f"{self.pick(('min', 'max'))}({one}, {other})": 6,
            f"({one} ** {self.pick(('2', '2', '4', '0.5', '3', 'W'))})": 4,
            f"({one} if {asked} else {other})": 10,
            f"({asked} {self.pick(('and', 'or'))} {self.truth(0)})": 4,
            self.own_call(depth): 4,
        }
        if self.takes_gpu:
            forms["(node.gpu_milli_left[gpu] if gpu >= 0 else 0)"] = 4
        return self.random.choices([*forms], [*forms.values()])[0]

    def truth(self, depth: int) -> str:
        roll = self.random.random()
        if roll < 0.08 and self.names:
            return self.name()
        if roll < 0.14 and self.takes_gpu:
            return f"gpu >= 0 and node.gpu_milli_left[gpu] {self.pick(COMPARISONS)} 500"
        if roll < 0.2:
            return f"not ({super().truth(depth)})"
        return super().truth(depth)

    def leaf(self) -> str:
        roll = self.random.random()
        if roll < 0.3 and "node" in self.has_records:
            return f"node.{self.pick(NODE)}"
        if roll < 0.5 and "pod" in self.has_records:
            return f"pod.{self.pick(POD)}"
        if roll < 0.75 and self.names:
            return self.name()
        return self.pick(self.bound)


def draw_sober(seed: int) -> str:
    """Draws the sober program of a seed."""
    return Sober(Random(seed)).program()
