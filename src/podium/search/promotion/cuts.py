"""Lists the ways in which a program can be made smaller by one cut, or its numbers shorter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from podium.search.program.expression import (
    ALWAYS,
    CALLS,
    COMPARISONS,
    FUNCTIONS,
    JUNCTIONS,
    PRODUCTS,
    REDUCTIONS,
    SUMS,
    Expression,
    Path,
    apply,
    number,
    part_at,
    replaced,
    walk,
)
from podium.search.program.layout import text_of
from podium.search.program.program import (
    Block,
    Guard,
    Program,
    complexity,
    roots,
    terms,
    with_root,
    with_roots,
)

DIGITS = (1, 2, 3)
"""Significant digits that a number is rounded to, the fewest first."""

LARGE = 100
"""Whole numbers from here on are measures, and lose digits like decimal ones."""

_DIVISIONS = ("/", "//", "%")
_CONDITIONS = (*COMPARISONS, *JUNCTIONS, "not")
_VALUES = ("name", "field", "if", "power", *SUMS, *PRODUCTS, *CALLS, *FUNCTIONS, *REDUCTIONS)

Key = tuple[str, str, int]
"""Recognises a cut in another version of the program: from, to, and which of such cuts it is."""


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """A program with one part less, not yet simplified."""

    key: Key
    program: Program
    saved: int  # parts that go at once; what nothing reads any more goes too

    @property
    def words(self) -> str:
        """Describes what is cut."""
        was, becomes, _ = self.key
        return f"{was} -> {becomes or 'nothing'}"


def cuts(program: Program) -> list[Cut]:
    """Lists cuts, the largest first."""
    found: list[Cut] = []
    seen: Counter[tuple[str, str]] = Counter()
    every = (*_part_cuts(program), *_function_cuts(program), *_guard_cuts(program))
    for was, becomes, smaller, saved in every:
        found.append(Cut((was, becomes, seen[was, becomes]), smaller, saved))
        seen[was, becomes] += 1
    return sorted(found, key=lambda cut: (-cut.saved, cut.key))


def _part_cuts(program: Program) -> Iterator[tuple[str, str, Program, int]]:
    defined = _defined(program)
    for index, root in enumerate(roots(program.block)):
        for path, part in walk(root):
            if is_fixed(root, path):
                continue
            goes_too = defined.get(str(part.value), 0) if part.head == "name" else 0
            for other in _replacements(part):
                smaller = with_root(program, index, replaced(root, path, other))
                saved = part.size - other.size + goes_too
                yield _shown(part), _shown(other), smaller, saved


def _function_cuts(program: Program) -> Iterator[tuple[str, str, Program, int]]:
    for index, function in enumerate(program.functions):
        for path, part in walk(function.expression):
            if is_fixed(function.expression, path):
                continue
            for other in _replacements(part):
                new = replace(function, expression=replaced(function.expression, path, other))
                functions = (*program.functions[:index], new, *program.functions[index + 1 :])
                smaller = replace(program, functions=functions)
                yield _shown(part), _shown(other), smaller, part.size - other.size


def _defined(program: Program) -> dict[str, int]:
    """Counts the parts of terms that are read once."""
    read = Counter(
        part.value for root in roots(program.block) for _, part in walk(root) if part.head == "name"
    )
    return {t.name: t.expression.size for t in terms(program.block) if read[t.name] == 1}


def is_fixed(root: Expression, path: Path) -> bool:
    """Returns whether a part stays: exponents, what a loop begins with, and protected divisors."""
    if not path:
        return False
    around, index = part_at(root, path[:-1]), path[-1]
    if around.head == "power" or around.head in REDUCTIONS:
        return index == (1 if around.head == "power" else 2)
    part = around.arguments[index]
    # A divisor is kept above 0, maybe for nodes that no training case has.
    is_divisor = around.head in _DIVISIONS and index == 1 and part.head == "max"
    return is_divisor and any(p.head == "number" and p.value > 0 for p in part.arguments)


def _replacements(part: Expression) -> Iterator[Expression]:
    yield from _smaller(part)
    if part.head in _CONDITIONS or part.head in _VALUES:
        yield from (number(0), number(1))


def _smaller(part: Expression) -> Iterator[Expression]:
    head, arguments = part.head, part.arguments
    if head in REDUCTIONS:
        yield arguments[2]
        if arguments[1] != ALWAYS:
            yield Expression(head, (arguments[0], ALWAYS, arguments[2]), part.value)
    elif head in SUMS or head in PRODUCTS:
        yield arguments[0]
        if head in ("+", "*"):
            yield arguments[1]
        elif head == "-":
            yield apply("neg", arguments[1])
    elif head == "if":
        yield from arguments[1:]
    elif head == "power" or (head in (*CALLS, *FUNCTIONS) and len(arguments) == 1):
        yield arguments[0]
    elif head in (*JUNCTIONS, "min", "max"):
        for index in range(len(arguments)):
            rest = arguments[:index] + arguments[index + 1 :]
            yield apply(head, *rest) if len(rest) > 1 else rest[0]


def _shown(part: Expression) -> str:
    if part.head not in REDUCTIONS:
        return text_of(part)
    value, condition, start = part.arguments
    where = "" if condition == ALWAYS else f" where {text_of(condition)}"
    return f"{part.head} of {text_of(value)}{where} from {text_of(start)}"


def _guard_cuts(program: Program) -> Iterator[tuple[str, str, Program, int]]:
    for guard, becomes, block in _with_guards_cut(program.block):
        smaller = replace(program, block=block)
        saved = complexity(program) - complexity(smaller)
        yield f"if {text_of(guard.condition)}", becomes, smaller, saved


def _with_guards_cut(block: Block) -> Iterator[tuple[Guard, str, Block]]:
    """Lists blocks with one guard removed, or with its condition taken as true."""
    for index, guard in enumerate(block.statements):
        if not isinstance(guard, Guard):
            continue
        before, after = block.statements[:index], block.statements[index + 1 :]
        yield guard, "", Block((*before, *after), block.result)
        yield guard, "always", Block((*before, *guard.block.statements), guard.block.result)
        for inner, becomes, smaller in _with_guards_cut(guard.block):
            kept = Guard(guard.condition, smaller)
            yield inner, becomes, Block((*before, kept, *after), block.result)


def without_guards(program: Program) -> Iterator[tuple[Guard, Program]]:
    """Lists programs with one guard removed, with that guard."""
    for guard, becomes, block in _with_guards_cut(program.block):
        if not becomes:
            yield guard, replace(program, block=block)


def roundings(program: Program) -> Iterator[tuple[Program, str]]:
    """Lists programs with shorter numbers: all of them first, then each by itself."""
    numbers = decimals(program)
    long = [value for value in numbers if value != _shorter(value, DIGITS[-1])]
    for digits in DIGITS[1:]:
        if len(long) > 1:
            found = _with_decimals(program, [_shorter(value, digits) for value in numbers])
            yield found, f"{len(long)} numbers -> {digits} significant digits"
    for index, value in enumerate(numbers):
        for short in (_shorter(value, digits) for digits in DIGITS):
            if value != short:
                changed = [*numbers[:index], short, *numbers[index + 1 :]]
                yield _with_decimals(program, changed), f"{value!r} -> {short!r}"


def _shorter(value: float, digits: int) -> float:
    short = float(f"{value:.{digits}g}")
    return short if isinstance(value, float) else int(short)


def decimals(program: Program) -> list[float]:
    """Lists the numbers of a program with digits to lose; of a constant its value, not its bounds.

    Small whole numbers count something.
    """
    found = [constant.value for constant in program.constants]
    whole = (*roots(program.block), *(each.expression for each in program.functions))
    parts = (part for root in whole for _, part in walk(root))
    found += [part.value for part in parts if part.head == "number"]
    return [value for value in found if _has_digits(value)]


def _has_digits(value: float) -> bool:
    return abs(value) >= LARGE if type(value) is int else type(value) is float


def _with_decimals(program: Program, numbers: list[float]) -> Program:
    left = iter(numbers)
    constants = tuple(
        replace(each, value=next(left)) if _has_digits(each.value) else each
        for each in program.constants
    )
    changed = [_with_own(root, left) for root in roots(program.block)]
    functions = tuple(
        replace(each, expression=_with_own(each.expression, left)) for each in program.functions
    )
    block = with_roots(program.block, iter(changed))
    return replace(program, constants=constants, block=block, functions=functions)


def _with_own(root: Expression, left: Iterator[float]) -> Expression:
    for path, part in walk(root):
        if part.head == "number" and _has_digits(part.value):
            root = replaced(root, path, number(next(left)))
    return root
